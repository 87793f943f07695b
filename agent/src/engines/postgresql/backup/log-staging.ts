import { watch } from "node:fs";
import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { LogReader } from "../../backup-facet.ts";
import { parsePosition, segmentBytes, segmentName, segmentStart } from "./position.ts";
import { historyText, type LeftTimeline } from "./timelines.ts";

/**
 * Brings a recovering engine the segments that it asks for. Its restore_command is a few lines of shell: it leaves a file
 * `<segment>.want` and waits for `<segment>.there`, `.absent` or `.failed`. What comes next is made ahead.
 */
export interface LogStaging {
  /** For restore_command. Ends with 1 only for what the archive certainly has not; an error ends with 126, which ends recovery. */
  readonly command: string;
  /** Timeline that the log ends on; undefined while it is on one alone, whichever that is. */
  readonly timeline: string | undefined;
  /** Answers until the signal; rejects with what the log could not be read for. */
  serve(signal: AbortSignal): Promise<void>;
}

const ahead = 3;
const lookEveryMs = 200;

/** `walDirectory`: the pg_wal of the engine that recovers. */
export async function createLogStaging(
  directory: string,
  walDirectory: string,
  log: LogReader | undefined,
): Promise<LogStaging> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const find = log === undefined ? undefined : createFinder(log);
  const passed = log === undefined ? [] : await timelinesOf(log);
  const made = new Map<string, Promise<boolean>>();

  /** True when the segment is there; false when the archive has nothing of it. */
  function make(name: string): Promise<boolean> {
    const known = made.get(name);
    if (known !== undefined) return known;
    const making = assemble(name);
    making.catch(() => undefined);
    made.set(name, making);
    return making;
  }

  async function assemble(name: string): Promise<boolean> {
    const history = historyOf(name, passed);
    if (history !== undefined) return place(name, history);
    const wanted = segmentStart(name);
    if (wanted === undefined || find === undefined) return false;
    const bytes = await find(wanted.timeline, wanted.position);
    return bytes === undefined ? false : place(name, bytes);
  }

  async function place(name: string, content: Buffer | string): Promise<true> {
    const draft = join(directory, `${name}.draft`);
    await writeFile(draft, content);
    await rename(draft, join(directory, `${name}.there`));
    return true;
  }

  /**
   * Writes the same segment of each earlier timeline to pg_wal. Replay takes the log from the file of the newest timeline that begins
   * in a segment, but reads the state of a prepared transaction from the file of the timeline that it is on.
   */
  async function placeEarlier(timeline: number, position: bigint): Promise<void> {
    for (const [index, { timeline: earlier }] of passed.entries()) {
      const end = passed[index + 1]?.at;
      if (find === undefined || Number(earlier) >= timeline || end === undefined || end <= position) continue;
      const bytes = await find(Number(earlier), position);
      if (bytes !== undefined) await writeFile(join(walDirectory, segmentName(Number(earlier), position)), bytes);
    }
  }

  async function answer(name: string): Promise<void> {
    const mark = (state: string) => writeFile(join(directory, `${name}.${state}`), "");
    try {
      const segment = segmentStart(name);
      if (segment !== undefined) await placeEarlier(segment.timeline, segment.position);
      if (!(await make(name))) await mark("absent");
      made.delete(name);
    } catch (error) {
      await mark("failed");
      throw error;
    }
    const wanted = segmentStart(name);
    if (wanted === undefined) return;
    for (let i = 1n; i <= ahead; i += 1n) {
      make(segmentName(wanted.timeline, wanted.position + i * segmentBytes)).catch(() => undefined);
    }
  }

  return {
    command: commandOf(directory),
    timeline: passed.length > 1 ? passed.at(-1)?.timeline : undefined,
    async serve(signal) {
      let changed = Promise.withResolvers<void>();
      const watcher = watch(directory, () => changed.resolve());
      watcher.on("error", () => undefined);
      try {
        while (!signal.aborted) {
          changed = Promise.withResolvers();
          for (const file of await readdir(directory)) {
            if (!file.endsWith(".want")) continue;
            await rm(join(directory, file));
            await answer(file.slice(0, -".want".length));
          }
          await Promise.race([changed.promise, sleep(lookEveryMs, undefined, { signal })]).catch(() => undefined);
        }
      } finally {
        watcher.close();
        await Promise.allSettled(made.values());
      }
    },
  };
}

/** A directory of ours: it has no character that a shell, or PostgreSQL's %, reads otherwise. */
function commandOf(directory: string): string {
  if (!/^[A-Za-z0-9/._-]+$/.test(directory)) throw new Error(`${directory} cannot be named in a command`);
  const f = `${directory}/%f`;
  return [
    `rm -f ${f}.absent ${f}.failed`,
    `: > ${f}.want || exit 126`,
    `while :; do if [ -e ${f}.there ]; then mv ${f}.there "%p" && exit 0; exit 126; fi`,
    `if [ -e ${f}.absent ]; then exit 1; fi`,
    `if [ -e ${f}.failed ]; then exit 126; fi`,
    "sleep 0.02; done",
  ].join("; ");
}

/** Timelines that the log is on, one after another, and where it comes upon each. They are counted upwards. */
async function timelinesOf(log: LogReader): Promise<LeftTimeline[]> {
  const headerOf = async (index: number) => (await log.at(index)).header;
  const found: LeftTimeline[] = [];
  const last = log.count === 0 ? 0 : Number((await headerOf(log.count - 1)).branch);
  for (let index = 0; index < log.count; ) {
    const { branch, from } = await headerOf(index);
    found.push({ timeline: branch, at: parsePosition(from) });
    if (Number(branch) === last) break;
    let high = log.count - 1;
    while (index < high) {
      const middle = (index + high) >> 1;
      if (Number((await headerOf(middle)).branch) > Number(branch)) high = middle;
      else index = middle + 1;
    }
  }
  return found;
}

/** The history file of this name; undefined for other files, and for timelines that the log did not come upon. */
function historyOf(name: string, passed: readonly LeftTimeline[]): string | undefined {
  const wanted = /^([0-9A-F]{8})\.history$/.exec(name)?.[1];
  const index = passed.findIndex(({ timeline }) => Number(timeline) === Number.parseInt(wanted ?? "", 16));
  if (index <= 0) return undefined;
  const left = passed.slice(0, index).map(({ timeline }, at) => ({ timeline, at: passed[at + 1]?.at ?? 0n }));
  return historyText(left);
}

/** Finds the bytes of a segment; undefined when the archive does not have its beginning. The last one is filled up with zeros. */
function createFinder(log: LogReader) {
  /** Where the last search ended: the next one mostly goes on from there. */
  let cached: { readonly index: number; readonly from: bigint; readonly to: bigint } | undefined;

  async function rangeOf(index: number) {
    const { header } = await log.at(index);
    return { index, from: parsePosition(header.from), to: parsePosition(header.to) };
  }

  async function indexOf(position: bigint): Promise<number | undefined> {
    if (cached !== undefined && cached.from <= position && position < cached.to) return cached.index;
    let low = cached !== undefined && cached.to <= position ? cached.index + 1 : 0;
    let high = log.count - 1;
    while (low <= high) {
      // Mostly it is the very next one.
      const middle = cached !== undefined && low === cached.index + 1 ? low : (low + high) >> 1;
      const range = await rangeOf(middle);
      cached = range;
      if (position < range.from) high = middle - 1;
      else if (position >= range.to) low = middle + 1;
      else return middle;
    }
    return undefined;
  }

  return async (timeline: number, start: bigint): Promise<Buffer | undefined> => {
    const first = await indexOf(start);
    if (first === undefined) return undefined;
    const segment = Buffer.alloc(Number(segmentBytes));
    let at = start;
    let isOfTimeline = false;
    for (let index = first; index < log.count && at < start + segmentBytes; index += 1) {
      const { header, log: bytes } = await log.at(index);
      // A segment begins with the log of the timelines that led to its own, and has none of those that its own led to.
      if (Number(header.branch) > timeline) break;
      isOfTimeline ||= Number(header.branch) === timeline;
      const from = parsePosition(header.from);
      const piece = bytes.subarray(Number(at - from), Number(start + segmentBytes - from));
      piece.copy(segment, Number(at - start));
      at += BigInt(piece.length);
    }
    return isOfTimeline ? segment : undefined;
  };
}
