import { open, stat } from "node:fs/promises";
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

/**
 * The engine's log as the keeper keeps it, bounded. A position survives rotation; one that is gone means the oldest
 * kept.
 */
export interface LogReader {
  read(request: ReadLogs, signal: AbortSignal): Promise<ReadLogsResult>;
  /** Position behind everything that is logged now. */
  end(): Promise<string>;
  /** The last lines since a position, as they were printed. */
  printedSince(cursor: string): Promise<string[]>;
}

export interface LogReaderDeps {
  readonly component: string;
  /** Segments are `<path>.<n>`. */
  readonly path: string;
  readonly parse: () => ((line: string) => ParsedLogLine | undefined) | undefined;
  /** Milliseconds since 1970; the clock of the machine unless given. */
  readonly now?: () => number;
}

const levels: readonly LogLevel[] = ["debug", "info", "warning", "error"];
const usualLimit = 100;
const largestLimit = 1_000;
const largestAnswerBytes = 1 << 20;
const keptLines = 100;
const longestMessage = 8_192;
const longestEntry = 64 << 10;
/** Lines that continue an entry are written with it: after so long it is whole. */
const wholeAfterMs = 1_000;

/** So far before a position that does not tell its head, as those of earlier agents, it is looked for. */
const lookBackBytes = 256 << 10;

/** What a line without a head takes from the one that it belongs to. */
interface Head {
  readonly level: LogLevel;
  readonly timeMs: number;
}

interface Position {
  readonly segment: number;
  readonly offset: number;
  /** What the lines behind it continue, if they begin without a head of their own. */
  readonly head?: Head;
}

/** An entry with what continues it so far. */
interface OpenEntry extends Head {
  message: string;
  /** Behind its last line. */
  end: Position;
}

export function createLogReader({ component, path, parse, now = Date.now }: LogReaderDeps): LogReader {
  /**
   * The head that lines from there on belong to: the one that the position tells, or the last one shortly before. Where the
   * segment is gone, so is the head, and the time at which the oldest segment began stands for it.
   */
  async function headBefore({ segment, offset, head }: Position): Promise<Head> {
    const there = segmentsIn(path);
    if (head !== undefined && there.includes(segment)) return head;
    const places = there.includes(segment) ? [segment, segment - 1].filter((each) => there.includes(each)) : [];
    for (const place of places) {
      const end = place === segment ? offset : (await stat(`${path}.${place}`)).size;
      const found = await lastHead(`${path}.${place}`, Math.max(0, end - lookBackBytes), end);
      if (found !== undefined) return found;
    }
    const oldest = there[0];
    return { level: "info", timeMs: oldest === undefined ? 0 : (await stat(`${path}.${oldest}`)).birthtimeMs };
  }

  /** The same position, in the next segment where nothing is left of its own: it may go without anything being lost. */
  async function settled(position: Position): Promise<Position> {
    const there = segmentsIn(path);
    const following = there.find((each) => each > position.segment);
    if (following === undefined || !there.includes(position.segment)) return position;
    const { size } = await stat(`${path}.${position.segment}`);
    return position.offset < size ? position : { ...position, segment: following, offset: 0 };
  }

  async function lastHead(file: string, from: number, to: number): Promise<Head | undefined> {
    const parseLine = parse() ?? (() => undefined);
    let last: Head | undefined;
    for await (const { text, end } of linesOf(file, from)) {
      if (end > to) break;
      const parsed = parseLine(text);
      if (parsed !== undefined) last = { level: parsed.level, timeMs: parsed.time.getTime() };
    }
    return last;
  }

  return {
    async end() {
      const segment = segmentsIn(path).at(-1) ?? 0;
      return segment === 0 ? "" : `${segment}:${(await stat(`${path}.${segment}`)).size}`;
    },
    async printedSince(cursor) {
      const start = startOf(cursor);
      const printed: string[] = [];
      for (const segment of segmentsIn(path).filter((number) => number >= start.segment)) {
        const from = segment === start.segment ? start.offset : 0;
        for await (const { text } of linesOf(`${path}.${segment}`, from)) {
          printed.push(text);
          if (printed.length > keptLines) printed.shift();
        }
      }
      return printed;
    },
    read: (request, signal) => (request.wholeEntries ? readEntries(request, signal) : readLines(request, signal)),
  };

  async function readLines(request: ReadLogs, signal: AbortSignal): Promise<ReadLogsResult> {
    const limit = Math.min(Math.max(request.limit, 0) || usualLimit, largestLimit);
    const sinceMs = request.since === undefined ? 0 : timestampMs(request.since);
    const lowest = Math.max(0, levels.indexOf(request.level as LogLevel));
    const parseLine = parse() ?? (() => undefined);
    const lines: EngineLogLine[] = [];
    const start = startOf(request.cursor);
    let next = start;
    let bytes = 0;
    let hasMore = false;
    // A line without a head of its own belongs to the one before it.
    let before = await headBefore(next);

    for (const segment of segmentsIn(path).filter((number) => number >= next.segment)) {
      if (segment > next.segment) next = { segment, offset: 0, head: before };
      for await (const { text, end } of linesOf(`${path}.${segment}`, next.offset)) {
        signal.throwIfAborted();
        if (lines.length >= limit || bytes >= largestAnswerBytes) {
          hasMore = true;
          break;
        }
        const parsed = parseLine(text);
        const level = parsed?.level ?? before.level;
        const timeMs = parsed?.time.getTime() ?? before.timeMs;
        before = { level, timeMs };
        next = { segment, offset: end, head: before };
        if (levels.indexOf(level) < lowest || timeMs < sinceMs) continue;
        const message = harmless(parsed?.message ?? text).slice(0, longestMessage);
        bytes += message.length;
        lines.push(create(EngineLogLineSchema, { time: timestampFromMs(timeMs), component, level, message }));
      }
      if (hasMore) break;
    }
    return create(ReadLogsResultSchema, {
      lines,
      nextCursor: textOf(await settled(next)),
      hasMore,
      lostSegments: lostBehind(start, segmentsIn(path)),
    });
  }

  async function readEntries(request: ReadLogs, signal: AbortSignal): Promise<ReadLogsResult> {
    const limit = Math.min(Math.max(request.limit, 0) || usualLimit, largestLimit);
    const sinceMs = request.since === undefined ? 0 : timestampMs(request.since);
    const lowest = Math.max(0, levels.indexOf(request.level as LogLevel));
    const parseLine = parse() ?? (() => undefined);
    const start = startOf(request.cursor);
    const segments = segmentsIn(path);
    const before = await headBefore(start);
    const lines: EngineLogLine[] = [];
    let next = start;
    let bytes = 0;
    let entry: OpenEntry | undefined;

    function close(whole: OpenEntry): void {
      const { timeMs, level, message } = whole;
      next = { ...whole.end, head: { timeMs, level } };
      if (levels.indexOf(whole.level) < lowest || whole.timeMs < sinceMs) return;
      bytes += whole.message.length;
      lines.push(create(EngineLogLineSchema, { time: timestampFromMs(timeMs), component, level, message }));
    }
    const answer = async (hasMore: boolean) =>
      create(ReadLogsResultSchema, {
        lines,
        nextCursor: textOf(await settled(next)),
        hasMore,
        lostSegments: lostBehind(start, segments),
      });

    for (const segment of segments.filter((number) => number >= start.segment)) {
      const from = segment === start.segment ? start.offset : 0;
      for await (const { text, end } of linesOf(`${path}.${segment}`, from)) {
        signal.throwIfAborted();
        const parsed = parseLine(text);
        const position = { segment, offset: end };
        if (entry !== undefined && parsed === undefined) {
          entry.message = `${entry.message}\n${harmless(text)}`.slice(0, longestEntry);
          entry.end = position;
          continue;
        }
        if (entry !== undefined) close(entry);
        if (lines.length >= limit || bytes >= largestAnswerBytes) return answer(true);
        const message = harmless(parsed?.message ?? text).slice(0, longestEntry);
        entry = {
          level: parsed?.level ?? before.level,
          timeMs: parsed?.time.getTime() ?? before.timeMs,
          message,
          end: position,
        };
      }
    }
    if (entry !== undefined && now() - entry.timeMs >= wholeAfterMs) close(entry);
    return answer(false);
  }
}

/** `<segment>:<offset>`, and `:<level>:<milliseconds since 1970>` of the head. */
function textOf({ segment, offset, head }: Position): string {
  const place = `${segment}:${offset}`;
  return head === undefined ? place : `${place}:${head.level}:${Math.trunc(head.timeMs)}`;
}

/** Segments from the position on that are not there any more; a position without a segment lost nothing. */
function lostBehind({ segment }: Position, there: readonly number[]): number {
  const oldest = there[0];
  if (segment === 0 || oldest === undefined || oldest <= segment) return 0;
  return oldest - segment;
}

function startOf(cursor: string): Position {
  const match = /^(\d{1,12}):(\d{1,15})(?::(debug|info|warning|error):(\d{1,15}))?$/.exec(cursor);
  if (match === null) return { segment: 0, offset: 0 };
  const [, segment, offset, level, timeMs] = match;
  const place = { segment: Number(segment), offset: Number(offset) };
  return level === undefined ? place : { ...place, head: { level: level as LogLevel, timeMs: Number(timeMs) } };
}

function segmentsIn(path: string): number[] {
  try {
    return segmentsOf(path);
  } catch {
    // Nothing was ever logged: the directory is not there.
    return [];
  }
}

/** Whole lines only: the last one may still be written. */
async function* linesOf(path: string, from: number): AsyncIterable<{ text: string; end: number }> {
  const file = await open(path, "r");
  try {
    let end = from;
    let rest: Buffer = Buffer.alloc(0);
    const block = Buffer.alloc(64 << 10);
    let position = from;
    for (;;) {
      const { bytesRead } = await file.read(block, 0, block.byteLength, position);
      if (bytesRead === 0) return;
      position += bytesRead;
      const all = Buffer.concat([rest, block.subarray(0, bytesRead)]);
      let start = 0;
      for (let newline = all.indexOf(0x0a); newline >= 0; newline = all.indexOf(0x0a, start)) {
        end += newline + 1 - start;
        yield { text: all.subarray(start, newline).toString("utf8"), end };
        start = newline + 1;
      }
      rest = all.subarray(start);
    }
  } finally {
    await file.close();
  }
}

/** Control characters would speak to a terminal; tabs stay. */
function harmless(text: string): string {
  return text.replace(/[^\P{Cc}\t]|[\u2028\u2029]/gu, "\ufffd");
}
