import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { hasCode } from "@holdfast/common/system-error.ts";
import { type ArchivedLogReader, firstObjectAfter } from "../../backup-facet.ts";
import { type LogBytes, type LogRecord, readLogRecords } from "./log-records.ts";
import { parseLsn } from "./lsn.ts";

/** PostgreSQL's epoch, 2000-01-01, in milliseconds since 1970. */
const epochMs = 946_684_800_000;

/**
 * Record at which replay ends for the data of a point in time: the last transaction that was committed, aborted or
 * prepared by then. By `recovery_target_time` the engine would replay all records up to the first later commit, and a
 * DROP DATABASE marks its database and removes files in records before its own commit. Undefined if the log does not
 * contain both a transaction before and one after that time: then the engine stops by time.
 *
 * `backupStart`: start of the base backup, whose end record is replayed in any case.
 */
export async function stopPoint(
  log: ArchivedLogReader | undefined,
  time: Date,
  backupStart: bigint | undefined,
): Promise<bigint | undefined> {
  if (log === undefined || log.count === 0) return undefined;
  const targetUs = BigInt(time.getTime() - epochMs) * 1_000n;
  const isLater = (record: LogRecord) => record.kind === "transaction" && record.timeUs > targetUs;
  const isStop = (record: LogRecord) =>
    record.kind === "transaction" ? record.timeUs <= targetUs : record.start === backupStart;
  let hasLater = false;
  let readFrom: bigint | undefined;
  for (let index = await firstObjectAfter(log, time); index >= 0; index -= 1) {
    let stop: bigint | undefined;
    let first: bigint | undefined;
    for await (const record of readLogRecords(bytesOf(log, index))) {
      first ??= record.position;
      if (readFrom !== undefined && record.position >= readFrom) break;
      if (isLater(record)) {
        hasLater = true;
        break;
      }
      if (isStop(record)) stop = record.position;
    }
    // Without a later transaction in the log the engine rejects the target.
    if (stop !== undefined) return hasLater ? stop : undefined;
    readFrom = first ?? readFrom;
  }
  return undefined;
}

/** Start of the base backup in a data directory; undefined for data that were recovered already. */
export async function backupStartOf(data: string): Promise<bigint | undefined> {
  try {
    const label = await readFile(join(data, "backup_label"), "utf8");
    const start = /^START WAL LOCATION: (\S+)/m.exec(label)?.[1];
    return start === undefined ? undefined : parseLsn(start);
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}

async function* bytesOf(log: ArchivedLogReader, first: number): AsyncGenerator<LogBytes> {
  for (let index = first; index < log.count; index += 1) {
    const { header, log: bytes } = await log.at(index);
    yield { from: parseLsn(header.from), bytes };
  }
}
