import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { logObject, logsPrefix } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { LogRange } from "../archive/archive.ts";
import { deleteLog } from "./archived-logs.ts";

let directory: string;
let objects: ObjectStore;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "holdfast-log-"));
  objects = createDirectoryStore(directory);
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const range = (term: number, firstSequence: number, lastSequence: number): LogRange => ({
  archiveId: "a-1",
  term,
  firstSequence,
  lastSequence,
  fromTime: term,
  toTime: term,
  keys: [],
  checkpoints: [],
});
async function* one(): AsyncGenerator<Buffer> {
  yield Buffer.from("log");
}
const store = (service: string, term: number, sequence: number) =>
  objects.put(logObject({ service, term }, sequence), one());
async function left(service: string): Promise<string[]> {
  const { objects: stored } = await objects.list(logsPrefix(service), { limit: 100 });
  return stored.map(({ key }) => key.slice(logsPrefix(service).length).replace(/0+(\d+)\/0+(\d+)/, "$1/$2"));
}

test("only objects outside of the ranges are deleted, also those behind an earlier term's end", async () => {
  for (const [term, sequence] of [
    [1, 1],
    [1, 2],
    [2, 1],
    [2, 2],
    // Stored by the replaced primary, and never recorded.
    [2, 3],
    [3, 1],
    [3, 2],
    [3, 3],
    // Newer than the recorded range.
    [3, 4],
  ] as const)
    await store("s-1", term, sequence);
  await store("s-2", 1, 1);
  const before = [range(2, 1, 2), range(3, 1, 3)];
  await deleteLog(objects, "s-1", before, [range(3, 2, 3)], AbortSignal.timeout(60_000));
  expect(await left("s-1")).toEqual(["3/2", "3/3", "3/4"]);
  expect(await left("s-2")).toEqual(["1/1"]);
});

test("a retained range of an earlier term retains all later objects", async () => {
  for (const [term, sequence] of [
    [1, 1],
    [1, 2],
    [1, 3],
    [2, 1],
  ] as const)
    await store("s-1", term, sequence);
  const before = [range(1, 1, 2), range(2, 1, 1)];
  await deleteLog(objects, "s-1", before, [range(1, 2, 2), range(2, 1, 1)], AbortSignal.timeout(60_000));
  expect(await left("s-1")).toEqual(["1/2", "1/3", "2/1"]);
});

test("without a retained range only recorded objects are deleted", async () => {
  await store("s-1", 1, 1);
  await store("s-1", 2, 1);
  await deleteLog(objects, "s-1", [range(1, 1, 1)], [], AbortSignal.timeout(60_000));
  expect(await left("s-1")).toEqual(["2/1"]);
});
