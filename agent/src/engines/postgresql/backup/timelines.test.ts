import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { OpenedLog } from "@holdfast/common/backup/log-object.ts";
import { expect, onTestFinished, test } from "vitest";
import { runProgram } from "../../../os/program.ts";
import { LogRemoved } from "../../backup-facet.ts";
import { createLogStaging } from "./log-staging.ts";
import { formatLsn, segmentBytes, segmentName } from "./lsn.ts";
import { historyText, parseHistory, spansFrom } from "./timelines.ts";

const ancestors = [
  { timeline: "1", at: 0x3000028n },
  { timeline: "3", at: 0x5000000n },
];

test("a history file is parsed as it is printed", () => {
  expect(parseHistory(historyText(ancestors))).toEqual(ancestors);
  expect(parseHistory("1\t0/3000028\tno recovery target specified\n\n# a comment\n")).toEqual(ancestors.slice(0, 1));
});

test("log is split into one span for each timeline", () => {
  const from = (branch: string, position: string) => spansFrom({ branch, position }, "4", ancestors);
  expect(from("1", "0/3000000")).toEqual([
    { timeline: "1", from: 0x3000000n, to: 0x3000028n },
    { timeline: "3", from: 0x3000028n, to: 0x5000000n },
    { timeline: "4", from: 0x5000000n, to: undefined },
  ]);
  expect(from("1", "0/3000028").map(({ timeline }) => timeline)).toEqual(["3", "4"]);
  expect(from("4", "0/5000010")).toEqual([{ timeline: "4", from: 0x5000010n, to: undefined }]);
});

test.each([
  ["beyond the end of the timeline", "1", "0/3000029"],
  ["on an unrelated timeline", "2", "0/3000000"],
])("log %s is nowhere", (_, branch, position) => {
  expect(() => spansFrom({ branch, position }, "4", ancestors)).toThrow(LogRemoved);
});

/** Objects on these timelines with these sizes in bytes; every byte is the number of its object. */
function logOf(objects: readonly (readonly [branch: string, bytes: number])[]) {
  let at = segmentBytes;
  const opened = objects.map(([branch, bytes], index): OpenedLog => {
    const from = formatLsn(at);
    at += BigInt(bytes);
    const header = { service: "s", term: 1, sequence: index + 1, branch, from, to: formatLsn(at), time: "" };
    return { header, log: Buffer.alloc(bytes, index + 1) };
  });
  return { count: opened.length, at: async (index: number) => opened[index] as OpenedLog, settings: async () => ({}) };
}

/** Content that restore_command writes; undefined if the archive does not have the file. */
async function restored(objects: Parameters<typeof logOf>[0]) {
  const directory = await mkdtemp(join(tmpdir(), "holdfast-staging-"));
  const walDirectory = join(directory, "pg_wal");
  await mkdir(walDirectory);
  const staging = await createLogStaging(join(directory, "log"), walDirectory, logOf(objects));
  const over = new AbortController();
  const served = staging.serve(over.signal);
  onTestFinished(async () => {
    over.abort();
    await served;
    await rm(directory, { recursive: true, force: true });
  });
  const get = async (name: string): Promise<Buffer | undefined> => {
    const path = join(directory, "restored");
    const command = staging.command.replaceAll("%f", name).replaceAll("%p", path);
    const isThere = await runProgram(["sh", "-c", command], { signal: over.signal }).then(
      () => true,
      () => false,
    );
    return isThere ? readFile(path) : undefined;
  };
  const beside = (name: string) => readFile(join(walDirectory, name));
  return { timeline: staging.timeline, get, beside };
}

test("a recovery follows the timelines of the log, and a segment starts with its ancestors' log", async () => {
  const size = Number(segmentBytes);
  const { timeline, get, beside } = await restored([
    ["1", size],
    ["1", 1_000],
    ["3", 500],
    ["3", size],
    ["4", 100],
  ]);
  expect(timeline).toBe("4");
  const [first, second, third] = [1n, 2n, 3n].map((number) => number * segmentBytes) as [bigint, bigint, bigint];
  const switched = await get(segmentName(3, second));
  expect([0, 999, 1_000, 1_499, 1_500, size - 1].map((at) => switched?.[at])).toEqual([2, 2, 3, 3, 4, 4]);
  const earlier = await beside(segmentName(1, second));
  expect([earlier.length, ...[0, 999, 1_000].map((at) => earlier[at])]).toEqual([size, 2, 2, 0]);
  const before = await get(segmentName(1, second));
  expect([0, 999, 1_000].map((at) => before?.[at])).toEqual([2, 2, 0]);
  const last = await get(segmentName(4, third));
  expect([0, 1_499, 1_500, 1_599, 1_600].map((at) => last?.[at])).toEqual([4, 4, 5, 5, 0]);
  expect(await get(segmentName(3, first))).toBeUndefined();
  expect((await get("00000004.history"))?.toString()).toBe(
    historyText([
      { timeline: "1", at: second + 1_000n },
      { timeline: "3", at: third + 1_500n },
    ]),
  );
  expect((await get("00000003.history"))?.toString()).toMatch(/^1\t\S+\tfailover\n$/);
  for (const none of ["00000001.history", "00000002.history", "00000005.history"])
    expect(await get(none)).toBeUndefined();
});

test("a log with one timeline has no history file", async () => {
  const { timeline, get } = await restored([
    ["7", 10],
    ["7", 10],
  ]);
  expect(timeline).toBeUndefined();
  expect(await get("00000007.history")).toBeUndefined();
});
