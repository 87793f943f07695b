import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import {
  type EngineLogLine,
  EngineLogLineSchema,
  type ReadLogs,
  type ReadLogsResult,
  ReadLogsResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { segmentsOf } from "../../keeper/segment-log.ts";
import type { LogLevel, ParsedLogLine } from "../engines/engine-driver.ts";
import { watchDirectory } from "../os/directory-watch.ts";
import { withoutColors } from "./log-text.ts";

/**
 * Reads the engine's log, which the keeper stores in a bounded number of segments. A cursor survives rotation; a cursor
 * whose segment was deleted means the oldest segment.
 */
export interface TextLogReader {
  read(request: ReadLogs, signal: AbortSignal): Promise<ReadLogsResult>;
  /** Cursor at the end of the log. */
  end(): Promise<string>;
  /** Cursor so many bytes before the end of the log, or at the beginning of its newest segment. */
  beforeEnd(bytes: number): Promise<string>;
  /** The last lines since a cursor, as they were printed. */
  printedSince(cursor: string): Promise<string[]>;
  /** Waits for the first line since a cursor that matches, and resolves to it as it was printed. */
  nextLine(cursor: string, options: NextLineOptions): Promise<string>;
  /** Reads the lines since a cursor, and later ones as they are printed. Resolves at the signal. */
  follow(cursor: string, reader: LineReader, signal: AbortSignal): Promise<void>;
}

export interface LineReader {
  readonly onLine: (line: string) => void;
  /** Called once all lines that were printed so far have been read. */
  readonly onRead: () => void;
}

export interface NextLineOptions {
  readonly matches: (line: string) => boolean;
  /** The end of the component: if nothing that it printed matches, the wait rejects with this signal's reason. */
  readonly ended: AbortSignal;
  /** Ends the wait immediately, with this signal's reason. */
  readonly signal: AbortSignal;
}

/** A log, as it is read together with others. */
export interface LogFile {
  readonly component: string;
  /** Base path: segments are `<path>.<n>`. */
  readonly path: string;
  parse(line: string): ParsedLogLine | undefined;
}

export interface LogReaderDeps {
  readonly component: string;
  /** Base path: segments are `<path>.<n>`. */
  readonly path: string;
  readonly parse: () => ((line: string) => ParsedLogLine | undefined) | undefined;
  /** Milliseconds since 1970; defaults to the machine's clock. */
  readonly now?: () => number;
}

const levels: readonly LogLevel[] = ["debug", "info", "warning", "error"];
const defaultLimit = 100;
const maxLimit = 1_000;
const maxResponseBytes = 1 << 20;
/** More than MySQL's notes of a failed start, of which the first lines are the errors. */
const maxPrintedLines = 200;
const maxMessageLength = 8_192;
const maxEntryLength = 64 << 10;
/** The lines of one entry are written together, so after this time it is complete. */
const completeAfterMs = 1_000;

/** Interval in which a wait reads the log without a change of its directory, which may be missed. */
const rereadIntervalMs = 1_000;

/** Bytes before a cursor without a head in which the head is searched for. */
const searchBackBytes = 256 << 10;

/** Level and time of an entry's first line, which its continuation lines share. */
interface Head {
  readonly level: LogLevel;
  readonly timeMs: number;
}

interface Position {
  readonly segment: number;
  readonly offset: number;
  /** Head of the entry that the following lines continue, if they have none of their own. */
  readonly head?: Head;
}

/** An entry with the continuation lines read so far. */
interface OpenEntry extends Head {
  message: string;
  /** Number of characters that did not fit into the message. */
  cutLength: number;
  /** Position after its last line. */
  end: Position;
}

export function createTextLogReader({ component, path, parse, now = Date.now }: LogReaderDeps): TextLogReader {
  const log: LogFile = { component, path, parse: (line) => parse()?.(line) };
  return {
    end: () => endOfLog(path),
    async beforeEnd(bytes) {
      const { segment, offset } = startOf(await endOfLog(path));
      return segment === 0 ? "" : textOf({ segment, offset: Math.max(0, offset - bytes) });
    },
    async printedSince(cursor) {
      const start = startOf(cursor);
      const printed: string[] = [];
      for (const segment of segmentsIn(path).filter((number) => number >= start.segment)) {
        const from = segment === start.segment ? start.offset : 0;
        for await (const { text } of linesOf(`${path}.${segment}`, from)) {
          printed.push(text);
          if (printed.length > maxPrintedLines) printed.shift();
        }
      }
      return printed;
    },
    nextLine: (cursor, options) => nextLine(path, cursor, options),
    async follow(cursor, { onLine, onRead }, signal) {
      let position = startOf(cursor);
      const segments = watchSegments(path);
      try {
        while (!signal.aborted) {
          ({ position } = await readNew(path, position, (line) => {
            onLine(line);
            return signal.aborted;
          }));
          if (!signal.aborted) onRead();
          await segments.changed(rereadIntervalMs, signal).catch(() => undefined);
        }
      } finally {
        segments.close();
      }
    },
    read: (request, signal) =>
      readTogether([{ log, start: startOf(request.cursor) }], ([end]) => (end ? textOf(end) : ""), {
        request,
        now,
        signal,
      }),
  };
}

/** Number of characters of a log's key in a cursor of several logs. */
const keyLength = 6;

/**
 * Reads several logs as one, in the order of time. A cursor has the position in each log; a log that appeared after the
 * cursor is read from its beginning. `main`: path of the log that a cursor of one log alone means.
 */
export function createMergedLogReader({
  logs,
  main,
  now = Date.now,
}: {
  readonly logs: () => readonly LogFile[];
  readonly main: () => string | undefined;
  readonly now?: () => number;
}): Pick<TextLogReader, "read"> {
  return {
    read(request, signal) {
      const isOfOne = /^\d+:/.test(request.cursor);
      const positions = isOfOne ? new Map<string, Position>() : startsOf(request.cursor);
      const sources = logs().map((log) => {
        const start = isOfOne && log.path === main() ? startOf(request.cursor) : positions.get(keyOf(log));
        return { log, start: start ?? { segment: 0, offset: 0 } };
      });
      const cursorOf = (ends: readonly Position[]) =>
        ends
          .map(({ segment, offset }, index) => {
            const source = sources[index];
            return source === undefined ? "" : [keyOf(source.log), segment.toString(36), offset.toString(36)].join(".");
          })
          .join();
      return readTogether(sources, cursorOf, { request, now, signal });
    },
  };
}

function keyOf({ path }: LogFile): string {
  return createHash("sha256").update(basename(path)).digest("hex").slice(0, keyLength);
}

/** Positions by the keys of their logs, in a cursor such as `3f9ac1.1.5k,77b0de.2.0`. */
function startsOf(cursor: string): ReadonlyMap<string, Position> {
  const matches = cursor.matchAll(/(?<=^|,)([0-9a-f]{6})\.([0-9a-z]{1,8})\.([0-9a-z]{1,10})(?=,|$)/g);
  return new Map(
    [...matches].map(([, key = "", segment = "", offset = ""]) => [
      key,
      { segment: Number.parseInt(segment, 36), offset: Number.parseInt(offset, 36) },
    ]),
  );
}

/** A log and the position from which it is read. */
interface LogStart {
  readonly log: LogFile;
  readonly start: Position;
}

/** A line, or an entry with its continuation lines, and the position after it. */
interface LogItem extends Head {
  readonly message: string;
  readonly end: Position;
}

/** Reads lines or entries of all logs in the order of time. `cursorOf`: the cursor of a position in each log. */
async function readTogether(
  sources: readonly LogStart[],
  cursorOf: (ends: readonly Position[]) => string,
  options: { readonly request: ReadLogs; readonly now: () => number; readonly signal: AbortSignal },
): Promise<ReadLogsResult> {
  const { request, now, signal } = options;
  const limit = Math.min(Math.max(request.limit, 0) || defaultLimit, maxLimit);
  const sinceMs = request.since === undefined ? 0 : timestampMs(request.since);
  const lowest = Math.max(0, levels.indexOf(request.level as LogLevel));
  const newest = request.newest && request.cursor === "" && !request.completeEntries;
  const contained = request.completeEntries ? "" : request.contains.toLowerCase();
  const ends = sources.map(({ start }) => start);
  const lines: EngineLogLine[] = [];
  let bytes = 0;
  let hasMore = false;
  const read = sources.map((source) =>
    request.completeEntries ? entriesFrom(source, now, signal) : linesFrom(source, signal),
  );
  for await (const { item, source } of inOrderOfTime(read)) {
    if (!newest && (lines.length >= limit || bytes >= maxResponseBytes)) {
      hasMore = true;
      break;
    }
    const { timeMs, level, message, end } = item;
    ends[source] = { ...end, head: { level, timeMs } };
    if (levels.indexOf(level) < lowest || timeMs < sinceMs) continue;
    if (!message.toLowerCase().includes(contained)) continue;
    const { component = "" } = sources[source]?.log ?? {};
    bytes += message.length;
    lines.push(create(EngineLogLineSchema, { time: timestampFromMs(timeMs), component, level, message }));
    while (newest && (lines.length > limit || bytes > maxResponseBytes)) bytes -= lines.shift()?.message.length ?? 0;
  }
  const skippedEnds = await Promise.all(sources.map(({ log, start }, index) => skipped(log, ends[index] ?? start)));
  return create(ReadLogsResultSchema, {
    lines,
    nextCursor: cursorOf(skippedEnds),
    hasMore,
    lostSegments: sources.reduce((sum, { log, start }) => sum + lostSegmentsAfter(start, segmentsIn(log.path)), 0),
    selected: !request.completeEntries,
  });
}

/** Merges items, each with the number of its source. Only the earliest of each source are in memory. */
async function* inOrderOfTime<T extends Head>(
  sources: readonly AsyncGenerator<T>[],
): AsyncGenerator<{ readonly item: T; readonly source: number }> {
  try {
    const first = await Promise.all(sources.map((source) => source.next()));
    const heads = first.map(({ done, value }) => (done === true ? undefined : (value as T)));
    for (;;) {
      let source = -1;
      for (const [index, head] of heads.entries()) {
        if (head !== undefined && head.timeMs < (heads[source]?.timeMs ?? Number.POSITIVE_INFINITY)) source = index;
      }
      const item = heads[source];
      if (item === undefined) return;
      yield { item, source };
      const { done, value } = (await sources[source]?.next()) ?? { done: true };
      heads[source] = done === true ? undefined : (value as T);
    }
  } finally {
    await Promise.all(sources.map((source) => source.return(undefined)));
  }
}

/** The lines since a position. A line without a head belongs to the entry before it. */
async function* linesFrom({ log, start }: LogStart, signal: AbortSignal): AsyncGenerator<LogItem> {
  let before = await headBefore(log, start);
  for await (const { text, end, parsed } of parsedFrom(log, start, signal)) {
    before = { level: parsed?.level ?? before.level, timeMs: parsed?.time.getTime() ?? before.timeMs };
    yield { ...before, message: cut(printable(parsed?.message ?? text), maxMessageLength), end };
  }
}

/** The complete entries since a position. */
async function* entriesFrom({ log, start }: LogStart, now: () => number, signal: AbortSignal): AsyncGenerator<LogItem> {
  const before = await headBefore(log, start);
  let entry: OpenEntry | undefined;
  for await (const { text, end, parsed } of parsedFrom(log, start, signal)) {
    if (entry !== undefined && parsed === undefined) {
      const line = printable(text);
      if (entry.message.length <= maxEntryLength) entry.message = `${entry.message}\n${line}`;
      else entry.cutLength += line.length + 1;
      entry.end = end;
      continue;
    }
    if (entry !== undefined) yield closed(entry);
    entry = {
      level: parsed?.level ?? before.level,
      timeMs: parsed?.time.getTime() ?? before.timeMs,
      message: printable(parsed?.message ?? text),
      cutLength: 0,
      end,
    };
  }
  if (entry !== undefined && now() - entry.timeMs >= completeAfterMs) yield closed(entry);
}

function closed({ cutLength, message, ...entry }: OpenEntry): LogItem {
  return { ...entry, message: cut(message, maxEntryLength, message.length + cutLength) };
}

async function* parsedFrom({ path, parse }: LogFile, start: Position, signal: AbortSignal) {
  for (const segment of segmentsIn(path).filter((number) => number >= start.segment)) {
    const from = segment === start.segment ? start.offset : 0;
    for await (const { text, end } of linesOf(`${path}.${segment}`, from)) {
      signal.throwIfAborted();
      yield { text, end: { segment, offset: end }, parsed: parse(text) };
    }
  }
}

/**
 * Head of the lines at a position: the cursor's, or the last one in the bytes before the position. If the segment was
 * deleted, the creation time of the oldest segment replaces it.
 */
async function headBefore(log: LogFile, { segment, offset, head }: Position): Promise<Head> {
  const { path } = log;
  const available = segmentsIn(path);
  if (head !== undefined && available.includes(segment)) return head;
  const candidates = available.includes(segment)
    ? [segment, segment - 1].filter((each) => available.includes(each))
    : [];
  for (const position of candidates) {
    const end = position === segment ? offset : (await stat(`${path}.${position}`)).size;
    const found = await lastHead(log, position, Math.max(0, end - searchBackBytes), end);
    if (found !== undefined) return found;
  }
  const oldest = available[0];
  // The file system's time has fractions, which no Timestamp can have.
  const { birthtimeMs } = oldest === undefined ? { birthtimeMs: 0 } : await stat(`${path}.${oldest}`);
  return { level: "info", timeMs: Math.trunc(birthtimeMs) };
}

async function lastHead(
  { path, parse }: LogFile,
  segment: number,
  from: number,
  to: number,
): Promise<Head | undefined> {
  let last: Head | undefined;
  for await (const { text, end } of linesOf(`${path}.${segment}`, from)) {
    if (end > to) break;
    const parsed = parse(text);
    if (parsed !== undefined) last = { level: parsed.level, timeMs: parsed.time.getTime() };
  }
  return last;
}

/**
 * Moves a position at the end of its segment to the next segment, so that the deletion of the segment loses nothing.
 */
async function skipped({ path }: LogFile, position: Position): Promise<Position> {
  const available = segmentsIn(path);
  const following = available.find((each) => each > position.segment);
  if (following === undefined || !available.includes(position.segment)) return position;
  const { size } = await stat(`${path}.${position.segment}`);
  return position.offset < size ? position : { ...position, segment: following, offset: 0 };
}

/** Cursor at the end of the log with this base path. */
export async function endOfLog(path: string): Promise<string> {
  const segment = segmentsIn(path).at(-1) ?? 0;
  return segment === 0 ? "" : `${segment}:${(await stat(`${path}.${segment}`)).size}`;
}

/**
 * Waits for the first line since a cursor that matches, in the log with this base path, and resolves to it. Complete
 * lines are read once; the directory is watched, so that a line is found as soon as it is printed. The keeper drops
 * output that a disk is too slow or too full for, so a program can run without the line.
 */
export async function nextLine(
  path: string,
  cursor: string,
  { matches, ended, signal }: NextLineOptions,
): Promise<string> {
  const limit = AbortSignal.any([ended, signal]);
  const segments = watchSegments(path);
  let position = startOf(cursor);
  try {
    for (;;) {
      signal.throwIfAborted();
      // Read before the log, which is complete once its component has ended.
      const isOver = ended.aborted;
      const read = await readNew(path, position, matches);
      if (read.line !== undefined) return read.line;
      ({ position } = read);
      if (isOver) throw ended.reason;
      await segments.changed(rereadIntervalMs, limit).catch(() => undefined);
    }
  } finally {
    segments.close();
  }
}

const watchSegments = (path: string) => watchDirectory(dirname(path), (name) => name.startsWith(`${basename(path)}.`));

/** Reads complete lines from a position up to the first that matches, which it returns, or to the end. */
async function readNew(
  path: string,
  from: Position,
  matches: (line: string) => boolean,
): Promise<{ readonly position: Position; readonly line?: string }> {
  let position = from;
  for (const segment of segmentsIn(path).filter((number) => number >= from.segment)) {
    if (segment > position.segment) position = { segment, offset: 0 };
    for await (const { text, end } of linesOf(`${path}.${segment}`, position.offset)) {
      position = { segment, offset: end };
      if (matches(text)) return { position, line: text };
    }
  }
  return { position };
}

/**
 * Cursor: `<segment>:<offset>`, followed by `:<level>:<milliseconds since 1970>` of the head if there is one.
 * Example: `3:1048:info:1760000000000`.
 */
function textOf({ segment, offset, head }: Position): string {
  const position = `${segment}:${offset}`;
  return head === undefined ? position : `${position}:${head.level}:${Math.trunc(head.timeMs)}`;
}

/** Number of deleted segments since the position; 0 for a position without a segment. */
function lostSegmentsAfter({ segment }: Position, available: readonly number[]): number {
  const oldest = available[0];
  if (segment === 0 || oldest === undefined || oldest <= segment) return 0;
  return oldest - segment;
}

function startOf(cursor: string): Position {
  const match = /^(\d{1,12}):(\d{1,15})(?::(debug|info|warning|error):(\d{1,15}))?$/.exec(cursor);
  if (match === null) return { segment: 0, offset: 0 };
  const [, segment, offset, level, timeMs] = match;
  const position = { segment: Number(segment), offset: Number(offset) };
  return level === undefined ? position : { ...position, head: { level: level as LogLevel, timeMs: Number(timeMs) } };
}

function segmentsIn(path: string): number[] {
  try {
    return segmentsOf(path);
  } catch {
    // The directory is missing: nothing was logged yet.
    return [];
  }
}

/** Yields complete lines only; the last one may still be written. */
async function* linesOf(path: string, from: number): AsyncIterable<{ text: string; end: number }> {
  const file = await open(path, "r");
  try {
    let end = from;
    let partial: Buffer = Buffer.alloc(0);
    const block = Buffer.alloc(64 << 10);
    let position = from;
    for (;;) {
      const { bytesRead } = await file.read(block, 0, block.byteLength, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      const all = Buffer.concat([partial, block.subarray(0, bytesRead)]);
      let start = 0;
      for (let newline = all.indexOf(0x0a); newline >= 0; newline = all.indexOf(0x0a, start)) {
        end += newline + 1 - start;
        yield { text: all.subarray(start, newline).toString("utf8"), end };
        start = newline + 1;
      }
      partial = all.subarray(start);
    }
  } finally {
    await file.close();
  }
}

/** Text without the sequences that color it, and with control characters except tabs replaced: a terminal runs them. */
function printable(text: string): string {
  return withoutColors(text).replace(/[^\P{Cc}\t]|[\u2028\u2029]/gu, "\ufffd");
}

/** Number of characters that the mark of a cut text may have. */
const cutMarkLength = 40;

/** Text of at most `max` characters. A longer one ends with the number of characters that it lacks. */
function cut(text: string, max: number, length = text.length): string {
  if (length <= max) return text;
  const start = text.slice(0, max - cutMarkLength).replace(/[\ud800-\udbff]$/, "");
  return `${start}... (cut: ${length - start.length} characters)`;
}
