import {
  closeSync,
  fdatasync,
  fdatasyncSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { rpmWindowMs } from "@holdfast/common/inference/accounts.ts";
import type { Log } from "@holdfast/common/log.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { applyRecord, emptyState, type JournalRecord, type JournalState, recordsOf } from "./journal-state.ts";

/** What a process must not forget, in lines of a file: calls, what they used, what it holds. */
export interface Journal {
  readonly state: JournalState;
  /**
   * Applies a line at once; resolves when the file has it, so that a kill of the process does not lose it. Lines of one turn are
   * one write. Rejects when the disk does not take it, which whoever does not wait need not look at.
   */
  append(record: JournalRecord): Promise<void>;
  /** Resolves when all that was appended survives a loss of power. */
  sync(): Promise<void>;
  readonly bytes: number;
  /** No more calls may begin: a gibibyte waits for controllers. */
  readonly isFull: boolean;
  close(): Promise<void>;
}

const syncEveryMs = 1_000;
const fullBytes = 1 << 30;
/** From so many bytes on it is written anew whenever it has doubled since. */
const longBytes = 8 << 20;
const linesAtOnce = 1_000;
const syncFile = promisify(fdatasync);

/** Reads what an earlier process left. */
export function openJournal(
  directory: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): Journal {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "journal");
  const pathAnew = `${path}.new`;
  const state = emptyState();
  for (const record of recordsIn(path, log)) applyRecord(state, record);
  let file = -1;
  let bytes = 0;
  let bytesAnew = 0;
  let lines: string[] = [];
  let flushed = nextFlush();
  let isDirty = false;
  let syncing: Promise<void> | undefined;
  /** The file that will take its place; -1 for none. */
  let next = -1;
  let bytesNext = 0;
  let rewriting: Promise<void> | undefined;
  fsyncSync(writeState());
  replace();

  const upkeep = setInterval(() => {
    sync().catch((error: unknown) => log.error("journal not synced", { error }));
    if (bytes > longBytes && bytes > 2 * bytesAnew)
      rewriting ??= rewrite()
        .catch((error: unknown) => log.error("journal not written anew", { error }))
        .finally(() => (rewriting = undefined));
  }, syncEveryMs);
  upkeep.unref();

  /** The state alone, in a file beside the journal; `next` gets what is appended from here on as well. */
  function writeState(): number {
    flush();
    forgetRequests(state, now());
    next = openSync(pathAnew, "w", 0o600);
    bytesNext = 0;
    let batch: string[] = [];
    const put = (file: number) => {
      bytesNext += writeAll(file, batch.join(""));
      batch = [];
    };
    for (const record of recordsOf(state)) {
      batch.push(lineOf(record));
      if (batch.length === linesAtOnce) put(next);
    }
    put(next);
    return next;
  }

  /** The file beside it, all of which is on disk, becomes the journal. */
  function replace(): void {
    renameSync(pathAnew, path);
    const before = file;
    file = next;
    next = -1;
    bytes = bytesNext;
    bytesAnew = bytesNext;
    // A sync that is under way has the old file open.
    if (before >= 0)
      Promise.resolve(syncing)
        .catch(() => undefined)
        .finally(() => closeSync(before));
  }

  /** Most of it is synced while calls go on, and what came meanwhile before it takes its place. */
  async function rewrite(): Promise<void> {
    const anew = writeState();
    try {
      await syncFile(anew);
      flush();
      if (next !== anew) throw new Error("the disk does not take it");
      fdatasyncSync(anew);
      replace();
    } catch (error) {
      next = -1;
      closeSync(anew);
      throw error;
    }
  }

  function flush(): void {
    if (lines.length === 0) return;
    const text = lines.join("");
    const done = flushed;
    lines = [];
    flushed = nextFlush();
    try {
      bytes += writeAll(file, text);
      writeNext(text);
      isDirty = true;
      done.resolve();
    } catch (error) {
      log.error("journal not written", { error });
      done.reject(error);
    }
  }

  function writeNext(text: string): void {
    if (next < 0) return;
    try {
      bytesNext += writeAll(next, text);
    } catch {
      // Whoever writes it anew finds that it is no longer the next one.
      next = -1;
    }
  }

  async function sync(): Promise<void> {
    flush();
    if (!isDirty) return syncing;
    isDirty = false;
    const mine = Promise.resolve(syncing)
      .catch(() => undefined)
      .then(() => syncFile(file));
    syncing = mine;
    await mine;
  }

  return {
    state,
    append(record) {
      applyRecord(state, record);
      if (lines.length === 0) setImmediate(flush);
      lines.push(lineOf(record));
      return flushed.promise;
    },
    sync,
    get bytes() {
      return bytes;
    },
    get isFull() {
      return bytes > fullBytes;
    },
    async close() {
      clearInterval(upkeep);
      await rewriting;
      await sync();
      closeSync(file);
    },
  };
}

function nextFlush(): PromiseWithResolvers<void> {
  const flush = Promise.withResolvers<void>();
  flush.promise.catch(() => undefined);
  return flush;
}

/** For appends that nothing waits for: the flush has logged its failure, and the state has the record. */
export function logged(): undefined {
  return undefined;
}

function lineOf(record: JournalRecord): string {
  return `${JSON.stringify(record)}\n`;
}

function writeAll(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  return bytes.length;
}

/** The last line may have broken off: what it would have said never happened. */
function* recordsIn(path: string, log: Log): Generator<JournalRecord> {
  for (const line of textOf(path).split("\n")) {
    if (line === "") continue;
    let record: JournalRecord;
    try {
      record = JSON.parse(line) as JournalRecord;
    } catch {
      log.warn("journal has a line that broke off", { bytes: line.length });
      continue;
    }
    yield record;
  }
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (hasCode(error, "ENOENT")) return "";
    throw error;
  }
}

function forgetRequests({ requests }: JournalState, now: number): void {
  for (const [account, times] of requests) {
    const kept = times.filter((at) => at > now - rpmWindowMs);
    if (kept.length === 0) requests.delete(account);
    else requests.set(account, kept);
  }
}
