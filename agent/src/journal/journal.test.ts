import { execFileSync } from "node:child_process";
import { appendFile, mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { TaskResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterEach, beforeEach, expect, test } from "vitest";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { openTaskJournal } from "./journal.ts";

let directory: string;
let path: string;
let now = 0;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "journal-"));
  path = join(directory, "journal");
  now = 1_000_000;
});
afterEach(() => rm(directory, { recursive: true }));

const task = (id: string, generation = 1n) => ({
  id,
  ownerId: "service",
  kind: "putEngineUser",
  generation,
  deadlineAt: 1_000_000,
});
const resultOf = (taskId: string) =>
  create(TaskResultSchema, { taskId, output: { case: "putEngineUser", value: { changed: true } } });

test("an opened journal has the started tasks and their outcomes", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.begin(task("a"));
  await journal.begin(task("b"));
  await journal.finish(resultOf("a"));
  await journal.close();
  const again = await openTaskJournal(path, () => now);
  expect(again.outcome("a")).toEqual(resultOf("a"));
  expect(again.outcome("b")).toBe("started");
  expect(again.outcome("c")).toBe("unknown");
  expect(again.openTasks().sort()).toEqual(["a", "b"]);
  expect(again.unacknowledged()).toEqual([resultOf("a")]);
  await again.close();
});

test("terms and generations only grow, across restarts too", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.raiseTerm("service", 3n);
  await journal.raiseTerm("service", 2n);
  await journal.begin(task("a", 9n));
  await journal.begin(task("b", 4n));
  await journal.close();
  const again = await openTaskJournal(path, () => now);
  expect(again.terms.get("service")).toBe(3n);
  expect(again.generation("service", "putEngineUser")).toBe(9n);
  expect(again.generation("service", "dropEngineUser")).toBe(0n);
  await again.close();
});

test("a removed task is unknown", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.begin(task("a"));
  await journal.finish(resultOf("a"));
  await journal.remove("a");
  expect(journal.outcome("a")).toBe("unknown");
  await journal.close();
  const again = await openTaskJournal(path, () => now);
  expect(again.openTasks()).toEqual([]);
  await again.close();
});

test("an intent is removed a day after its deadline, a result is not", async () => {
  const day = 86_400_000;
  const journal = await openTaskJournal(path, () => now);
  await journal.begin(task("a"));
  await journal.begin(task("b"));
  await journal.finish(resultOf("b"));
  now += day;
  await journal.begin({ ...task("c"), deadlineAt: now });
  expect(journal.openTasks()).toEqual(["a", "b", "c"]);
  now += 1;
  await journal.begin({ ...task("d"), deadlineAt: now });
  expect(journal.openTasks()).toEqual(["b", "c", "d"]);
  await journal.close();
  now += day;
  const again = await openTaskJournal(path, () => now);
  expect(again.openTasks().sort()).toEqual(["b", "d"]);
  await again.close();
});

test("a tail torn at any byte is truncated, and complete records before it remain", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.begin(task("a"));
  const completeBytes = (await stat(path)).size;
  await journal.begin(task("b", 1n));
  await journal.close();
  const bytes = await readFile(path);
  for (let end = completeBytes; end < bytes.length; end++) {
    await writeFile(path, bytes.subarray(0, end));
    const cut = await openTaskJournal(path, () => now);
    expect(cut.openTasks()).toEqual(["a"]);
    await cut.begin(task("c"));
    await cut.close();
    const again = await openTaskJournal(path, () => now);
    expect(again.openTasks()).toEqual(["a", "c"]);
    await again.close();
  }
});

test("junk after the last record is truncated", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.begin(task("a"));
  await journal.close();
  await appendFile(path, "00000000 {}\n\0\0\0");
  const again = await openTaskJournal(path, () => now);
  expect(again.openTasks()).toEqual(["a"]);
  await again.close();
});

test.skipIf(!asRoot)("an append refused by a full disk is repaired later, and no later record is lost", async () => {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "journal", directory]);
  const filling = join(directory, "filling");
  try {
    const journal = await openTaskJournal(path, () => now);
    await journal.begin(task("a"));
    await expect(writeFile(filling, "x".repeat(64 << 10))).rejects.toMatchObject({ code: "ENOSPC" });
    // Half of the record fits in the last page.
    await expect(journal.begin(task("b".repeat(8_000), 7n))).rejects.toMatchObject({ code: "ENOSPC" });
    for (let times = 0; times < 2; times += 1)
      await expect(journal.raiseTerm("service", 3n)).rejects.toMatchObject({ code: "ENOSPC" });
    await rm(filling);
    await journal.raiseTerm("service", 3n);
    await journal.begin(task("c", 7n));
    const again = await openTaskJournal(path, () => now);
    expect(again.terms.get("service")).toBe(3n);
    expect(again.generation("service", "putEngineUser")).toBe(7n);
    expect(again.openTasks()).toEqual(expect.arrayContaining(["a", "c"]));
    await Promise.all([journal.close(), again.close()]);
  } finally {
    execFileSync("umount", ["--lazy", directory]);
  }
});

test.skipIf(!asRoot)("an agent starts on a full disk with an old intent", async () => {
  execFileSync("mount", ["-t", "tmpfs", "-o", "size=64k", "journal", directory]);
  try {
    const journal = await openTaskJournal(path, () => now);
    // The record of the removal needs more space than the last page has.
    await journal.begin(task("a".repeat(6_000)));
    await journal.close();
    await expect(writeFile(join(directory, "filling"), "x".repeat(64 << 10))).rejects.toMatchObject({ code: "ENOSPC" });
    now += 2 * 86_400_000;
    await (await openTaskJournal(path, () => now)).close();
  } finally {
    execFileSync("umount", ["--lazy", directory]);
  }
});

test("a journal of many acknowledged tasks stays small", async () => {
  const journal = await openTaskJournal(path, () => now);
  await journal.raiseTerm("service", 5n);
  for (let round = 0; round < 40; round++) {
    const ids = Array.from({ length: 100 }, (_, index) => `task-${round}-${index}`);
    await Promise.all(ids.map((id) => journal.begin(task(id))));
    await Promise.all(ids.map((id) => journal.finish(resultOf(id))));
    await Promise.all(ids.map((id) => journal.remove(id)));
  }
  await journal.begin(task("last"));
  expect((await stat(path)).size).toBeLessThan(512 << 10);
  await journal.close();
  const again = await openTaskJournal(path, () => now);
  expect(again.openTasks()).toEqual(["last"]);
  expect(again.terms.get("service")).toBe(5n);
  await again.close();
});
