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
import { storedFormat } from "@holdfast/common/stored-names.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { applyRecord, emptyState, type JournalRecord, type JournalState, recordsOf } from "./journal-state.ts";

/**
 * The durable state of a process in lines of a file: calls, their usage and quota leases. A file that has doubled its
 * size is rewritten while calls continue, and replaced atomically.
 */
export interface UsageJournal {
  readonly state: JournalState;
  /**
   * Applies a line immediately; resolves when it is written to the file, so it survives a kill of the process. Lines of
   * one event loop iteration are one write. Rejects if the disk fails, which callers that do not wait can ignore.
   */
  append(record: JournalRecord): Promise<void>;
  /** Resolves when all lines are synced, so that they survive a power failure. */
  sync(): Promise<void>;
  readonly bytes: number;
  /** True above 1 GiB of unconfirmed settlements: then no call is admitted. */
  readonly isFull: boolean;
  close(): Promise<void>;
}

const syncIntervalMs = 1_000;
const maxBytes = 1 << 30;
/** From this size on, the journal is rewritten whenever it has doubled. */
const minRewriteBytes = 8 << 20;
const linesPerWrite = 1_000;
const syncFile = promisify(fdatasync);
/** Keys of lines, which an update of the proxy must read. */
const format = storedFormat<JournalRecord>({ call: "its" });

/** Opens the journal of an earlier process. */
export function openUsageJournal(
  directory: string,
  { now, log }: { readonly now: () => number; readonly log: Log },
): UsageJournal {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const path = join(directory, "journal");
  const rewritePath = `${path}.new`;
  const state = emptyState();
  for (const record of recordsIn(path, log)) applyRecord(state, record);
  let file = -1;
  let bytes = 0;
  let rewrittenBytes = 0;
  let lines: string[] = [];
  let flushed = nextFlush();
  let isDirty = false;
  let syncing: Promise<void> | undefined;
  /** Descriptor of the file that will replace the journal; -1 without one. */
  let next = -1;
  let bytesNext = 0;
  let rewriting: Promise<void> | undefined;
  fsyncSync(writeState());
  replace();

  const timer = setInterval(() => {
    sync().catch((error: unknown) => log.error("journal not synced", { error }));
    if (bytes > minRewriteBytes && bytes > 2 * rewrittenBytes)
      rewriting ??= rewrite()
        .catch((error: unknown) => log.error("journal not rewritten", { error }))
        .finally(() => (rewriting = undefined));
  }, syncIntervalMs);
  timer.unref();

  /** Writes the state to a new file; from then on, lines are appended to both files. */
  function writeState(): number {
    flush();
    dropOldRequests(state, now());
    next = openSync(rewritePath, "w", 0o600);
    bytesNext = 0;
    let batch: string[] = [];
    const put = (file: number) => {
      bytesNext += writeAll(file, batch.join(""));
      batch = [];
    };
    for (const record of recordsOf(state)) {
      batch.push(lineOf(record));
      if (batch.length === linesPerWrite) put(next);
    }
    put(next);
    return next;
  }

  /** Replaces the journal by the new file, which is completely on disk. */
  function replace(): void {
    renameSync(rewritePath, path);
    const before = file;
    file = next;
    next = -1;
    bytes = bytesNext;
    rewrittenBytes = bytesNext;
    // A sync in progress uses the old file.
    if (before >= 0)
      Promise.resolve(syncing)
        .catch(() => undefined)
        .finally(() => closeSync(before));
  }

  /**
   * Syncs the new file while calls continue, then the lines that they appended, then replaces the journal by the file.
   */
  async function rewrite(): Promise<void> {
    const rewritten = writeState();
    try {
      await syncFile(rewritten);
      flush();
      if (next !== rewritten) throw new Error("the new journal could not be written");
      fdatasyncSync(rewritten);
      replace();
    } catch (error) {
      next = -1;
      closeSync(rewritten);
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
      // `rewrite` detects that its file is no longer the next one.
      next = -1;
    }
  }

  async function sync(): Promise<void> {
    flush();
    if (!isDirty) return syncing;
    isDirty = false;
    const ownSync = Promise.resolve(syncing)
      .catch(() => undefined)
      .then(() => syncFile(file));
    syncing = ownSync;
    await ownSync;
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
      return bytes > maxBytes;
    },
    async close() {
      clearInterval(timer);
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

/** Handler of failed appends that nothing awaits: the flush has logged the failure, and the state has the record. */
export function ignoreLogged(): undefined {
  return undefined;
}

function lineOf(record: JournalRecord): string {
  return `${format.format(record)}\n`;
}

function writeAll(file: number, text: string): number {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  return bytes.length;
}

/** Parses the journal. The last line may be incomplete after a crash, and is ignored. */
function* recordsIn(path: string, log: Log): Generator<JournalRecord> {
  for (const line of textOf(path).split("\n")) {
    if (line === "") continue;
    let record: JournalRecord;
    try {
      record = format.parse(line);
    } catch {
      log.warn("journal has an incomplete line", { bytes: line.length });
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

function dropOldRequests({ requests }: JournalState, now: number): void {
  for (const [account, times] of requests) {
    const recent = times.filter((at) => at > now - rpmWindowMs);
    if (recent.length === 0) requests.delete(account);
    else requests.set(account, recent);
  }
}
