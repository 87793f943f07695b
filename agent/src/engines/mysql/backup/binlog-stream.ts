import { type FileHandle, open, stat } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { hasCode } from "@holdfast/common/system-error.ts";
import { type LogFacet, type LogPiece, type LogPosition, LogRemoved, type LogStream } from "../../backup-facet.ts";
import type { Instance } from "../../instance.ts";
import { dataDirectory } from "../layout.ts";
import { probeSql } from "../probe.ts";
import { openSession, type Session, withSession } from "../session.ts";
import { archivedBefore, branchEnd, readArchiveState, serverId, writeArchiveRow } from "./archive-state.ts";
import { type BinlogEnd, newestFileAfter, readEnd } from "./binlog-files.ts";
import {
  binlogName,
  distance,
  fileNumber,
  formatBranch,
  formatPosition,
  parseBranch,
  parsePosition,
} from "./binlog-position.ts";

const pollIntervalMs = 200;
/** Time limit of a statement: the engine blocks inside a write on a full disk, and while it waits for a replica. */
const withinMs = 2_000;
const pieceBytes = 1 << 20;
const setsMax = 100;

/** Transactions that are certainly before a position. */
interface KnownSet {
  readonly position: string;
  readonly gtids: string;
}

/**
 * The log of MySQL: its binary log, read from the files. A file is a branch. Bytes are read up to the end that the
 * engine reports, which is the end of a transaction, and are flushed to the disk first: a crash cannot cut them off.
 */
export function createBinlog(): LogFacet {
  let sets: KnownSet[] = [];
  /** The heartbeat in progress. One that waits for a replica has no time limit in the engine. */
  let heartbeat: Promise<string> | undefined;

  function recordSet(position: string, gtids: string): void {
    if (sets.at(-1)?.position !== position) sets = [...sets.slice(-setsMax), { position, gtids }];
  }

  async function beat(instance: Instance): Promise<string> {
    const signal = AbortSignal.timeout(10 * withinMs);
    return withSession(
      instance,
      signal,
      async (session) => {
        await session.rows(probeSql);
        return positionOf(instance, await readEnd(session));
      },
      { withinMs },
    );
  }

  return {
    follow: (instance, from, signal) => follow(instance, from, recordSet, signal),
    async commit(instance, signal) {
      if (heartbeat !== undefined) throw new Error("the heartbeat before is not committed yet");
      const time = new Date();
      const current = beat(instance).finally(() => {
        heartbeat = undefined;
      });
      heartbeat = current;
      return { time, position: await within(current, AbortSignal.any([signal, AbortSignal.timeout(withinMs)])) };
    },
    settings: async () => ({}),
    async retention(instance, signal) {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      const end = await withSession(instance, bounded, readEnd);
      return { end: positionOf(instance, end), limitBytes: 0 };
    },
    distance,
    async saveArchiveState(instance, position, state, signal) {
      const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
      const gtids = sets.findLast((each) => distance(each.position, position) >= 0)?.gtids;
      await writeArchiveRow(instance, { position, state, gtids }, bounded);
    },
    readArchiveState,
    branchEnd,
  };
}

const positionOf = ({ spec }: Instance, end: Pick<BinlogEnd, "file" | "offset">): string =>
  formatPosition({ ...end, term: Number(spec.term) });

/** Rejects with the signal's reason if the work takes longer. */
async function within<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  signal.throwIfAborted();
  work.catch(() => undefined);
  const aborted = Promise.withResolvers<never>();
  const abort = () => aborted.reject(signal.reason);
  signal.addEventListener("abort", abort, { once: true });
  try {
    return await Promise.race([work, aborted.promise]);
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

function follow(
  instance: Instance,
  from: LogPosition | undefined,
  recordSet: (position: string, gtids: string) => void,
  signal: AbortSignal,
): LogStream {
  let end = "";

  async function* pieces(): AsyncGenerator<LogPiece> {
    const session = await openSession(instance, signal, { withinMs });
    const run = <T>(work: (opened: Session) => Promise<T>) => within(work(session), signal);
    let file: FileHandle | undefined;
    try {
      // The engine would remove files that are not archived: one that an agent of an older release started.
      await run((opened) => opened.rows("SET GLOBAL binlog_expire_logs_seconds = 0"));
      const server = await run(serverId);
      const start = await run((opened) => startOf(opened, server, from));
      let { file: number, offset } = start;
      file = await openFile(instance, number, offset);
      for (;;) {
        const committed = await run(readEnd);
        end = positionOf(instance, committed);
        recordSet(end, committed.gtids);
        const isLast = number === committed.file;
        if (number > committed.file) throw new LogRemoved(`The engine's log has no ${binlogName(number)}.`);
        const until = isLast ? committed.offset : (await file.stat()).size;
        if (until > offset) await file.datasync();
        while (offset < until) {
          signal.throwIfAborted();
          const bytes = Buffer.allocUnsafe(Math.min(pieceBytes, until - offset));
          const { bytesRead } = await file.read(bytes, 0, bytes.length, offset);
          if (bytesRead === 0) throw new Error(`${binlogName(number)} is shorter than the engine reported`);
          const at = { term: Number(instance.spec.term), file: number };
          const piece = {
            branch: formatBranch({ server, file: number }),
            from: formatPosition({ ...at, offset }),
            to: formatPosition({ ...at, offset: offset + bytesRead }),
            bytes: bytes.subarray(0, bytesRead),
          };
          offset += bytesRead;
          yield piece;
        }
        if (!isLast) {
          await file.close();
          [number, offset] = [number + 1, 0];
          file = await openFile(instance, number, offset);
        } else {
          await untilLarger(instance, file, number, offset, signal);
        }
      }
    } finally {
      session.close();
      await file?.close();
    }
  }

  return {
    pieces: pieces(),
    get end() {
      return end;
    },
    // The position in the saved state determines which files are retained.
    confirmDurable: () => undefined,
  };
}

/** Resolves once the file has grown or another file exists. */
async function untilLarger(
  instance: Instance,
  file: FileHandle,
  number: number,
  offset: number,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await sleep(pollIntervalMs, undefined, { signal });
    if ((await file.stat()).size > offset) return;
    const hasNext = await stat(pathOf(instance, number + 1)).then(
      () => true,
      () => false,
    );
    if (hasNext) return;
  }
}

const pathOf = (instance: Instance, number: number): string => join(dataDirectory(instance), binlogName(number));

/** Throws LogRemoved if the file does not exist or ends before the offset. */
async function openFile(instance: Instance, number: number, offset: number): Promise<FileHandle> {
  const name = binlogName(number);
  try {
    const file = await open(pathOf(instance, number), "r");
    const { size } = await file.stat();
    if (size >= offset) return file;
    await file.close();
  } catch (error) {
    if (!hasCode(error, "ENOENT")) throw error;
    throw new LogRemoved(`The engine no longer has ${name}.`, { cause: error });
  }
  throw new LogRemoved(`${name} is shorter than its archived part.`);
}

/**
 * File and offset at which the stream begins. After the archive of another server, that is the beginning of a file that
 * has every transaction which is not archived; the file also has archived ones.
 */
async function startOf(
  session: Session,
  server: string,
  from: LogPosition | undefined,
): Promise<{ readonly file: number; readonly offset: number }> {
  if (from === undefined) return { file: (await readEnd(session)).file, offset: 0 };
  const branch = parseBranch(from.branch);
  if (branch.server === server) return { file: branch.file, offset: parsePosition(from.position).offset };
  const archived = await archivedBefore(session, from);
  const name = archived === undefined ? undefined : await newestFileAfter(session, archived);
  if (name === undefined)
    throw new LogRemoved("The new primary does not have the log that follows the archive of the one before.");
  return { file: fileNumber(name), offset: 0 };
}
