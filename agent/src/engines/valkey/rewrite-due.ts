/** The append-only file and its disk, in bytes. */
export interface LogOnDisk {
  /** All files of the log, also those that the engine is about to remove. */
  readonly logBytes: number;
  /** Of them, the contents at the time of the last rewrite. */
  readonly baseBytes: number;
  readonly totalBytes: number;
  /** Free for any writer, without the reserve. */
  readonly freeBytes: number;
}

/** A log below this share of the disk is the engine's own business, as long as there is room. */
const smallShare = 1 / 8;
/** With less free, whatever fills the disk, each gain counts. */
const tightShare = 1 / 10;
/** With less to gain than this share of the disk, or of the base, a rewrite costs more than it gives. */
const gainShare = 1 / 32;
const tightGainShare = 1 / 128;
const gainOfBase = 1.05;
/** A rewrite may turn out larger than the data in memory, and writes go on meanwhile. */
const spare = 1.1;
/** The old and the new log together end below the level at which writes are blocked. */
const usableShare = 0.92;

const isTight = ({ freeBytes, totalBytes }: LogOnDisk) => freeBytes < totalBytes * tightShare;

/** Pure: can the log be large enough for a rewrite, whatever the data are? */
export function isLogLarge(log: LogOnDisk): boolean {
  return log.logBytes >= log.totalBytes * (isTight(log) ? tightGainShare : smallShare);
}

/** Pure: has the log grown so much that a rewrite gains something even of data that are all there? */
export function hasLogGrown({ logBytes, baseBytes, totalBytes }: LogOnDisk): boolean {
  return logBytes - baseBytes >= totalBytes * gainShare;
}

/**
 * Pure: is the log rewritten now? The engine's own rule counts from the size after the last rewrite, with all that was written
 * meanwhile, so a fast writer has the limit double until the disk is full. This one counts from the data: at twice their size,
 * or as long as the rewritten log fits beside the old one, and at any gain on a disk that is nearly full.
 */
export function isRewriteDue(log: LogOnDisk, dataBytes: number): boolean {
  const { logBytes, baseBytes, totalBytes, freeBytes } = log;
  if (!isLogLarge(log) || dataBytes * spare > freeBytes) return false;
  const leastGain = totalBytes * (isTight(log) ? tightGainShare : gainShare);
  if (logBytes - dataBytes < leastGain) return false;
  // As long as the data are what they were, a log that was just rewritten has nothing to give.
  if (logBytes < baseBytes * gainOfBase && dataBytes > baseBytes / 2) return false;
  if (isTight(log)) return true;
  const lastThatFits = usableShare * totalBytes - spare * dataBytes;
  const limit = Math.min(
    Math.max(2 * dataBytes, totalBytes * smallShare),
    Math.max(lastThatFits * 0.9, dataBytes + leastGain),
  );
  return logBytes >= limit;
}
