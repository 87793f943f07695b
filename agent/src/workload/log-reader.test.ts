import { appendFile, mkdtemp, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ReadLogsResultSchema, ReadLogsSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LogLevel } from "../engines/engine-driver.ts";
import { createMergedLogReader, createTextLogReader, type TextLogReader } from "./log-reader.ts";

let directory: string;
let path: string;
let logs: TextLogReader;

/** `<seconds> <level> <message>`. */
function parse(line: string) {
  const match = /^(\d+) (debug|info|warning|error) (.*)$/.exec(line);
  if (match === null) return undefined;
  const [, seconds, level, message = ""] = match;
  return { time: new Date(Number(seconds) * 1000), level: level as LogLevel, message };
}

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "logs-"));
  path = join(directory, "engine.log");
  logs = createTextLogReader({ component: "engine", path, parse: () => parse });
});
afterEach(() => rm(directory, { recursive: true }));

async function read(request: { cursor?: string; level?: string; limit?: number; newest?: boolean; contains?: string }) {
  const answer = await logs.read(create(ReadLogsSchema, request), AbortSignal.timeout(60_000));
  return { ...answer, messages: answer.lines.map(({ message }) => message) };
}

test("nothing is read from an empty log", async () => {
  expect(await read({})).toMatchObject({ messages: [], hasMore: false });
  expect(await logs.end()).toBe("");
});

test("lines without a head, which a failed recovery prints first, are sent", async () => {
  await writeFile(`${path}.1`, "no head\n1 info a\n");
  // The time that a file system notes has fractions of a millisecond.
  await utimes(`${path}.1`, 1_764_316_800.1234567, 1_764_316_800.1234567);
  for (const completeEntries of [false, true]) {
    const result = await logs.read(create(ReadLogsSchema, { completeEntries }), AbortSignal.timeout(60_000));
    const { lines } = fromBinary(ReadLogsResultSchema, toBinary(ReadLogsResultSchema, result));
    expect(lines[0]).toMatchObject({ message: "no head", level: "info" });
    const { nextCursor: cursor } = result;
    await appendFile(`${path}.1`, "nor here\n");
    const next = await logs.read(create(ReadLogsSchema, { completeEntries, cursor }), AbortSignal.timeout(60_000));
    toBinary(ReadLogsResultSchema, next);
  }
});

test("a cursor continues across segments, including deleted ones", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 info b\n");
  const first = await read({ limit: 1 });
  expect(first).toMatchObject({ messages: ["a"], hasMore: true });
  await writeFile(`${path}.2`, "3 info c\n");
  const second = await read({ cursor: first.nextCursor });
  expect(second).toMatchObject({ messages: ["b", "c"], hasMore: false });
  await rm(`${path}.1`);
  await appendFile(`${path}.2`, "4 info d\n");
  expect((await read({ cursor: second.nextCursor })).messages).toEqual(["d"]);
  expect((await read({ cursor: first.nextCursor })).messages).toEqual(["c", "d"]);
});

test("the newest lines across segments are in order, and a cursor continues after them", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 error b\n3 info c\n");
  await writeFile(`${path}.2`, "4 info d\n5 error e\n");
  const newest = await read({ limit: 3, newest: true });
  expect(newest).toMatchObject({ messages: ["c", "d", "e"], hasMore: false, selected: true });
  expect((await read({ limit: 1, newest: true, level: "error" })).messages).toEqual(["e"]);
  await appendFile(`${path}.2`, "6 info f\n7 info g\n");
  expect((await read({ cursor: newest.nextCursor, newest: true, limit: 1 })).messages).toEqual(["f"]);
});

test("lines that contain a text are found in upper and lower case", async () => {
  await writeFile(`${path}.1`, "1 info Deadlock detected\n2 info b\n3 info a deadlock\n");
  expect((await read({ contains: "DEADlock" })).messages).toEqual(["Deadlock detected", "a deadlock"]);
  expect((await read({ contains: "deadlock", newest: true, limit: 1 })).messages).toEqual(["a deadlock"]);
});

test("an incomplete line waits", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 info hal");
  const first = await read({});
  expect(first.messages).toEqual(["a"]);
  await appendFile(`${path}.1`, "f\n");
  expect((await read({ cursor: first.nextCursor })).messages).toEqual(["half"]);
});

test("a line without a head has the level and time of the previous one", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 error b\n\tmore of b\n3 info c\n");
  const errors = await read({ level: "error" });
  expect(errors.messages).toEqual(["b", "\tmore of b"]);
  expect(errors.lines.map(({ time }) => time?.seconds)).toEqual([2n, 2n]);
});

test("a page that starts within an entry has the level and time of its head, across segments", async () => {
  await writeFile(`${path}.1`, "7 error a\n  b\n  c\n");
  const first = await read({ limit: 1 });
  const second = await read({ cursor: first.nextCursor, limit: 1 });
  expect(second.lines[0]).toMatchObject({ message: "  b", level: "error", time: { seconds: 7n } });
  const third = await read({ cursor: second.nextCursor });
  expect(third.lines[0]).toMatchObject({ message: "  c", level: "error", time: { seconds: 7n } });
  await writeFile(`${path}.2`, "  d\n");
  const fourth = await read({ cursor: third.nextCursor });
  expect(fourth.lines[0]).toMatchObject({ message: "  d", level: "error", time: { seconds: 7n } });
  await rm(`${path}.1`);
  const oldest = await read({});
  expect(Number(oldest.lines[0]?.time?.seconds)).toBeGreaterThan(1_600_000_000);
});

test("a line far after its head has its time to the millisecond, even once the head was deleted", async () => {
  const parsed = (line: string) => {
    const match = /^@(\d+) (.*)$/.exec(line);
    return match === null
      ? undefined
      : { time: new Date(Number(match[1])), level: "error" as const, message: match[2] ?? "" };
  };
  const exact = createTextLogReader({ component: "engine", path, parse: () => parsed });
  const readPage = (cursor: string, limit: number, completeEntries: boolean) =>
    exact.read(create(ReadLogsSchema, { cursor, limit, completeEntries }), AbortSignal.timeout(60_000));
  const times = ({ lines }: Awaited<ReturnType<typeof readPage>>) => [
    ...new Set(lines.map(({ time }) => (time === undefined ? 0 : timestampMs(time)))),
  ];
  await writeFile(`${path}.1`, `@1700000000123 a\n${`${"x".repeat(1_000)}\n`.repeat(700)}`);
  const complete = await readPage("", 10, true);
  expect(times(complete)).toEqual([1_700_000_000_123]);
  await appendFile(`${path}.1`, "  late\n");
  expect(times(await readPage(complete.nextCursor, 10, true))).toEqual([1_700_000_000_123]);
  let { nextCursor: cursor } = await readPage("", 600, false);
  // The head's own line is not read again.
  await writeFile(`${path}.1`, (await readFile(`${path}.1`, "utf8")).replace("@1700000000123 a", "an_overwritten_h"));
  for (let page = 0; page < 3; page += 1) {
    const more = await readPage(cursor, 30, false);
    expect(times(more)).toEqual([1_700_000_000_123]);
    cursor = more.nextCursor;
  }
});

test("the deletion of a fully read segment loses nothing, and continuation lines have its head", async () => {
  await writeFile(`${path}.1`, "5 error a\n");
  await writeFile(`${path}.2`, "  of a\n");
  const readPage = (cursor: string) =>
    logs.read(create(ReadLogsSchema, { cursor, limit: 1, completeEntries: false }), AbortSignal.timeout(60_000));
  const first = await readPage("");
  await rm(`${path}.1`);
  const second = await readPage(first.nextCursor);
  expect(second).toMatchObject({
    lostSegments: 0,
    lines: [{ message: "  of a", level: "error", time: { seconds: 5n } }],
  });
});

test("control characters are replaced, and colors removed", async () => {
  await writeFile(
    `${path}.1`,
    "1 info \u001b[1;31mred\u001b[0m\u0007 \u0085next\ttab \u001b[38;5;9mx\n2 info a\u001b\n",
  );
  expect((await read({})).messages).toEqual(["red\ufffd \ufffdnext\ttab x", "a\ufffd"]);
});

test("a long message ends with the number of characters that were cut", async () => {
  await writeFile(
    `${path}.1`,
    `1 info ${"x".repeat(8_192)}\n2 info ${"y".repeat(8_151)}\u{1f600}${"y".repeat(1_847)}\n`,
  );
  const { messages } = await read({});
  expect(messages).toEqual(["x".repeat(8_192), `${"y".repeat(8_151)}... (cut: 1849 characters)`]);
});

describe("several logs", () => {
  const parseAt = (line: string) => {
    const match = /^(\d+) (.*)$/s.exec(line);
    return match === null
      ? undefined
      : { time: new Date(Number(match[1])), level: "info" as const, message: match[2] ?? "" };
  };
  const fileOf = (name: string) => join(directory, `${name}.log`);
  const readAll = async (names: readonly string[], request: { cursor?: string; limit?: number; newest?: boolean }) => {
    const reader = createMergedLogReader({
      logs: () => names.map((name) => ({ component: name, path: fileOf(name), parse: parseAt })),
      main: () => fileOf("b"),
    });
    const { lines, nextCursor, hasMore } = await reader.read(
      create(ReadLogsSchema, request),
      AbortSignal.timeout(60_000),
    );
    return { messages: lines.map(({ component, message }) => `${component} ${message}`), nextCursor, hasMore };
  };

  test("are read in the order of time, page by page", async () => {
    await writeFile(`${fileOf("a")}.1`, "1 one\n4 four\n");
    await writeFile(`${fileOf("a")}.2`, "6 six\n");
    await writeFile(`${fileOf("b")}.1`, "2 two\n3 three\n5 five\n");
    const first = await readAll(["a", "b"], { limit: 4 });
    expect(first).toMatchObject({ messages: ["a one", "b two", "b three", "a four"], hasMore: true });
    const second = await readAll(["a", "b"], { cursor: first.nextCursor });
    expect(second).toMatchObject({ messages: ["b five", "a six"], hasMore: false });
    expect((await readAll(["a", "b"], { newest: true, limit: 3 })).messages).toEqual(["a four", "b five", "a six"]);
    expect(await readAll([], { cursor: second.nextCursor })).toMatchObject({ messages: [], hasMore: false });
  });

  test("a follower reads a log that is new from its beginning, and the last lines of the one before", async () => {
    await writeFile(`${fileOf("a")}.1`, "1 one\n");
    const { nextCursor: cursor } = await readAll(["a"], {});
    await appendFile(`${fileOf("a")}.1`, "3 last words\n");
    await writeFile(`${fileOf("b")}.1`, "2 starts\n4 serves\n");
    const next = await readAll(["a", "b"], { cursor });
    expect(next.messages).toEqual(["b starts", "a last words", "b serves"]);
    expect(await readAll(["b"], { cursor: next.nextCursor })).toMatchObject({ messages: [] });
  });

  test("a cursor of the main log alone, as it was before, continues there", async () => {
    await writeFile(`${fileOf("b")}.1`, "1 one\n2 two\n");
    expect((await readAll(["b"], { cursor: "1:6:info:1" })).messages).toEqual(["b two"]);
  });

  test("their cursor fits into a request with as many logs as a machine has", async () => {
    const names = Array.from({ length: 23 }, (_, number) => `release-${number}`);
    for (const name of names) await writeFile(`${fileOf(name)}.123`, `1 ${"x".repeat(5_000)}\n`);
    const { nextCursor } = await readAll(names, {});
    // A sealed cursor of the API has 1,024 characters at most.
    expect(nextCursor.length).toBeLessThan(500);
    expect((await readAll(names, { cursor: nextCursor })).messages).toEqual([]);
  });
});

test("an unknown cursor stands for the oldest segment", async () => {
  await writeFile(`${path}.1`, "1 info a\n");
  expect((await read({ cursor: "../../etc/passwd" })).messages).toEqual(["a"]);
});

describe("complete entries", () => {
  const readComplete = (cursor: string, limit = 0) =>
    logs.read(create(ReadLogsSchema, { cursor, limit, completeEntries: true }), AbortSignal.timeout(60_000));
  const messagesOf = ({ lines }: { lines: readonly { message: string }[] }) => lines.map(({ message }) => message);

  test("include their continuation lines, and cursors are between entries", async () => {
    await writeFile(`${path}.1`, "1 error a\n\tmore of a\n  last of a\n2 info b\n");
    const first = await readComplete("", 1);
    expect(messagesOf(first)).toEqual(["a\n\tmore of a\n  last of a"]);
    expect(first.hasMore).toBe(true);
    const second = await readComplete(first.nextCursor, 1);
    expect(messagesOf(second)).toEqual(["b"]);
    expect(second.lines[0]?.time?.seconds).toBe(2n);
    expect(messagesOf(await readComplete(second.nextCursor))).toEqual([]);
  });

  test("continue across segments with their own time", async () => {
    await writeFile(`${path}.1`, "7 error a\n");
    await writeFile(`${path}.2`, "  b\n8 info c\n");
    const { lines } = await readComplete("");
    expect(lines.map(({ message, time }) => [message, time?.seconds])).toEqual([
      ["a\n  b", 7n],
      ["c", 8n],
    ]);
  });

  test("the newest one waits for continuation lines", async () => {
    const now = Date.now();
    const reader = createTextLogReader({ component: "engine", path, parse: () => parse, now: () => 1_700_000_000_500 });
    await writeFile(`${path}.1`, "1 info a\n1700000000 error b\n");
    const readPage = (cursor: string) =>
      reader.read(create(ReadLogsSchema, { cursor, completeEntries: true }), AbortSignal.timeout(60_000));
    const first = await readPage("");
    expect(messagesOf(first)).toEqual(["a"]);
    await appendFile(`${path}.1`, "  more of b\n");
    expect(now).toBeGreaterThan(1_700_000_002_000);
    expect(messagesOf(await readComplete(first.nextCursor))).toEqual(["b\n  more of b"]);
  });

  test("are truncated at 64 KiB, and the remainder is not another entry", async () => {
    await writeFile(`${path}.1`, `1 info a\n${`${"x".repeat(1_000)}\n`.repeat(100)}2 info b\n`);
    const { lines } = await readComplete("");
    expect(lines[0]?.message).toMatch(/x\.\.\. \(cut: 34605 characters\)$/);
    expect(lines[0]?.message.length).toBeLessThanOrEqual(64 << 10);
    expect(lines.map(({ message }) => message.slice(0, 1))).toEqual(["a", "b"]);
  });
});

test("reports the number of deleted unread segments", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 info b\n");
  const first = await read({ limit: 1 });
  await rm(`${path}.1`);
  await writeFile(`${path}.4`, "3 info c\n");
  expect(await read({ cursor: first.nextCursor })).toMatchObject({ lostSegments: 3, messages: ["c"] });
  expect(await read({})).toMatchObject({ lostSegments: 0 });
});

describe("a wait for a line", () => {
  const never = new AbortController().signal;
  const isReady = (line: string) => line.endsWith("ready");
  const waitFor = async (cursor: string, ended = never, signal = AbortSignal.timeout(60_000)) =>
    logs.nextLine(cursor, { matches: isReady, ended, signal });

  test("resolves to the first matching line since the cursor, across segments", async () => {
    await writeFile(`${path}.1`, "1 info ready\n");
    const cursor = await logs.end();
    const waiting = waitFor(cursor);
    await appendFile(`${path}.1`, "2 info starting\n3 info al");
    await appendFile(`${path}.1`, "most re");
    await writeFile(`${path}.2`, "4 info ready\n5 info ready\n");
    expect(await waiting).toBe("4 info ready");
    await appendFile(`${path}.1`, "ady\n");
    expect(await waitFor(cursor)).toBe("3 info almost ready");
  });

  test("begins before the log exists", async () => {
    const waiting = waitFor(await logs.end());
    await writeFile(`${path}.1`, "1 info ready\n");
    expect(await waiting).toBe("1 info ready");
  });

  test("ends with its component, unless that printed the line", async () => {
    await writeFile(`${path}.1`, "1 info starting\n");
    const ended = new AbortController();
    const waiting = waitFor("", ended.signal);
    ended.abort(new Error("the engine ended"));
    await expect(waiting).rejects.toThrow("the engine ended");
    await appendFile(`${path}.1`, "2 info ready\n");
    expect(await waitFor("", ended.signal)).toBe("2 info ready");
  });

  test("ends with its signal", async () => {
    const stopped = new AbortController();
    const waiting = waitFor("", never, stopped.signal);
    stopped.abort(new Error("the settings changed"));
    await expect(waiting).rejects.toThrow("the settings changed");
  });
});

test("a cursor before the end is in the newest segment", async () => {
  expect(await logs.beforeEnd(10)).toBe("");
  await writeFile(`${path}.1`, "1 info a\n");
  await writeFile(`${path}.2`, "2 info b\n3 info c\n");
  expect(await logs.printedSince(await logs.beforeEnd(9))).toEqual(["3 info c"]);
  expect(await logs.printedSince(await logs.beforeEnd(1_000))).toEqual(["2 info b", "3 info c"]);
});

test("a follower reads what was printed before, and later lines of any segment, until its signal", async () => {
  await writeFile(`${path}.1`, "1 info a\n2 info b\n");
  const lines: string[] = [];
  const reads: number[] = [];
  const ended = new AbortController();
  const following = logs.follow(
    "",
    { onLine: (line) => lines.push(line), onRead: () => reads.push(lines.length) },
    ended.signal,
  );
  await waitUntil("the printed lines are read", () => lines.length === 2);
  await waitUntil("the reader is called once for both", () => reads.length > 0);
  expect(reads[0]).toBe(2);
  await appendFile(`${path}.1`, "3 info c\n");
  await writeFile(`${path}.2`, "4 info d\n");
  await waitUntil("the later lines are read", () => lines.length === 4);
  expect(lines).toEqual(["1 info a", "2 info b", "3 info c", "4 info d"]);
  ended.abort();
  await following;
  const { length } = reads;
  await appendFile(`${path}.2`, "5 info e\n");
  expect(reads).toHaveLength(length);
});
