import { mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { watchDirectory } from "../../../os/directory-watch.ts";
import type { ArchivedLogReader } from "../../backup-facet.ts";
import { parseLsn, segmentBytes, segmentName, segmentStart } from "./lsn.ts";
import { historyText, type FormerTimeline } from "./timelines.ts";

/**
 * Serves WAL segments to a recovering engine. Its restore_command is a shell script that creates a file
 * `<segment>.want` and waits for `<segment>.there`, `.absent` or `.failed`. The next segments are assembled in advance.
 */
export interface LogStaging {
  /**
   * Value of restore_command. It exits with 1 only for files that the archive certainly does not have; errors exit with
   * 126, which ends the recovery.
   */
  readonly command: string;
  /** Timeline at the end of the log; undefined if the log has only one. */
  readonly timeline: string | undefined;
  /** Serves requests until the signal aborts; rejects with the error of reading the log. */
  serve(signal: AbortSignal): Promise<void>;
}

const prefetchCount = 3;
const pollIntervalMs = 200;

/** `walDirectory`: the pg_wal of the engine that recovers. */
export async function createLogStaging(
  directory: string,
  walDirectory: string,
  log: ArchivedLogReader | undefined,
): Promise<LogStaging> {
  await rm(directory, { recursive: true, force: true });
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const find = log === undefined ? undefined : createFinder(log);
  const timelines = log === undefined ? [] : await timelinesOf(log);
  const staged = new Map<string, Promise<boolean>>();

  /** Resolves true if the segment is available, false if the archive does not have it. */
  function stage(name: string): Promise<boolean> {
    const existing = staged.get(name);
    if (existing !== undefined) return existing;
    const assembling = assemble(name);
    assembling.catch(() => undefined);
    staged.set(name, assembling);
    return assembling;
  }

  async function assemble(name: string): Promise<boolean> {
    const history = historyOf(name, timelines);
    if (history !== undefined) return publish(name, history);
    const requested = segmentStart(name);
    if (requested === undefined || find === undefined) return false;
    const bytes = await find(requested.timeline, requested.position);
    return bytes === undefined ? false : publish(name, bytes);
  }

  async function publish(name: string, content: Buffer | string): Promise<true> {
    const draft = join(directory, `${name}.draft`);
    await writeFile(draft, content);
    await rename(draft, join(directory, `${name}.there`));
    return true;
  }

  /**
   * Writes the same segment of each earlier timeline to pg_wal. Replay takes the log from the file of the newest
   * timeline that begins in a segment, but reads a prepared transaction's state from the file of that transaction's
   * timeline.
   */
  async function placeEarlier(timeline: number, position: bigint): Promise<void> {
    for (const [index, { timeline: earlier }] of timelines.entries()) {
      const end = timelines[index + 1]?.at;
      if (find === undefined || Number(earlier) >= timeline || end === undefined || end <= position) continue;
      const bytes = await find(Number(earlier), position);
      if (bytes !== undefined) await writeFile(join(walDirectory, segmentName(Number(earlier), position)), bytes);
    }
  }

  async function serveRequest(name: string): Promise<void> {
    const mark = (state: string) => writeFile(join(directory, `${name}.${state}`), "");
    const requested = segmentStart(name);
    try {
      if (requested !== undefined) await placeEarlier(requested.timeline, requested.position);
      if (!(await stage(name))) await mark("absent");
      staged.delete(name);
    } catch (error) {
      await mark("failed");
      throw error;
    }
    if (requested === undefined) return;
    for (let i = 1n; i <= prefetchCount; i += 1n) {
      stage(segmentName(requested.timeline, requested.position + i * segmentBytes)).catch(() => undefined);
    }
  }

  return {
    command: commandOf(directory),
    timeline: timelines.length > 1 ? timelines.at(-1)?.timeline : undefined,
    async serve(signal) {
      const watching = watchDirectory(directory);
      try {
        while (!signal.aborted) {
          for (const file of await readdir(directory)) {
            if (!file.endsWith(".want")) continue;
            await rm(join(directory, file));
            await serveRequest(file.slice(0, -".want".length));
          }
          await watching.changed(pollIntervalMs, signal).catch(() => undefined);
        }
      } finally {
        watching.close();
        await Promise.allSettled(staged.values());
      }
    },
  };
}

/** The directory is the platform's: it contains no character that the shell or PostgreSQL's `%` would interpret. */
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

/** Timelines of the log in ascending order, each with the position at which it begins. */
async function timelinesOf(log: ArchivedLogReader): Promise<FormerTimeline[]> {
  const headerOf = async (index: number) => (await log.at(index)).header;
  const found: FormerTimeline[] = [];
  const last = log.count === 0 ? 0 : Number((await headerOf(log.count - 1)).branch);
  for (let index = 0; index < log.count; ) {
    const { branch, from } = await headerOf(index);
    found.push({ timeline: branch, at: parseLsn(from) });
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

/** Content of the history file with this name; undefined for other files and for timelines that are not in the log. */
function historyOf(name: string, timelines: readonly FormerTimeline[]): string | undefined {
  const requested = /^([0-9A-F]{8})\.history$/.exec(name)?.[1];
  const index = timelines.findIndex(({ timeline }) => Number(timeline) === Number.parseInt(requested ?? "", 16));
  if (index <= 0) return undefined;
  const ancestors = timelines
    .slice(0, index)
    .map(({ timeline }, at) => ({ timeline, at: timelines[at + 1]?.at ?? 0n }));
  return historyText(ancestors);
}

/**
 * Finds the bytes of a segment; undefined if the archive lacks its beginning. The last segment is padded with zeros.
 */
function createFinder(log: ArchivedLogReader) {
  /** Result of the last search; the next one usually continues from there. */
  let cached: { readonly index: number; readonly from: bigint; readonly to: bigint } | undefined;

  async function rangeOf(index: number) {
    const { header } = await log.at(index);
    return { index, from: parseLsn(header.from), to: parseLsn(header.to) };
  }

  async function indexOf(position: bigint): Promise<number | undefined> {
    if (cached !== undefined && cached.from <= position && position < cached.to) return cached.index;
    let low = cached !== undefined && cached.to <= position ? cached.index + 1 : 0;
    let high = log.count - 1;
    while (low <= high) {
      // Usually the very next object.
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
      // A segment begins with log of its timeline's ancestors, and contains none of its descendants.
      if (Number(header.branch) > timeline) break;
      isOfTimeline ||= Number(header.branch) === timeline;
      const from = parseLsn(header.from);
      const piece = bytes.subarray(Number(at - from), Number(start + segmentBytes - from));
      piece.copy(segment, Number(at - start));
      at += BigInt(piece.length);
    }
    return isOfTimeline ? segment : undefined;
  };
}
