import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRepositoryUsage } from "./repository-usage.ts";

const [first, second] = ["a".repeat(64), "b".repeat(64)];
let directory: string;

async function write(path: string, bytes: number): Promise<void> {
  const file = join(directory, "docker/registry/v2", path);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, Buffer.alloc(bytes));
}

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-usage-"));
  await write(`blobs/sha256/aa/${first}/data`, 200_000);
  await write(`blobs/sha256/bb/${second}/data`, 10);
  for (const repository of ["o-1/web", "o-1/api"])
    await write(`repositories/${repository}/_layers/sha256/${first}/link`, 71);
  await write(`repositories/o-1/web/_manifests/revisions/sha256/${second}/link`, 71);
  await write("repositories/o-1/web/_manifests/tags/1/current/link", 71);
});
afterAll(() => rm(directory, { recursive: true }));

test("layers count once, small files count 64 KiB, and other organizations do not count", async () => {
  const usage = createRepositoryUsage(createDirectoryStore(directory), 1_000_000, () => 0);
  expect(await usage.remaining("o-1")).toBe(1_000_000 - 200_000 - 2 * 65_536);
  expect(await usage.remaining("o-2")).toBe(1_000_000);
});

test("written bytes count immediately, and are measured again when they reach the limit, and after a minute", async () => {
  let now = 0;
  const usage = createRepositoryUsage(createDirectoryStore(directory), 1_000_000, () => now);
  const before = await usage.remaining("o-1");
  usage.add("o-1", 5_000);
  expect(await usage.remaining("o-1")).toBe(before - 5_000);
  usage.add("o-1", 2_000_000);
  expect(await usage.remaining("o-1")).toBe(before);
  await write("repositories/o-1/web/_uploads/u-1/data", 100_000);
  expect(await usage.remaining("o-1")).toBe(before);
  now = 60_000;
  expect(await usage.remaining("o-1")).toBe(before - 100_000);
});
