/** Sizes of the append-only file and its disk, in bytes. */
export interface LogOnDisk {
  /** Size of all files of the log, including files that the engine is about to remove. */
  readonly logBytes: number;
  /** Base files: the contents at the last rewrite. */
  readonly baseBytes: number;
  readonly totalBytes: number;
  /** Free for any writer, without the reserve. */
  readonly freeBytes: number;
}

/** Share of the disk below which the engine decides about rewrites itself, unless the disk is nearly full. */
const smallShare = 1 / 8;
/** Share of free disk space below which a rewrite of any gain is due. */
const tightShare = 1 / 10;
/** Minimum gain, as a share of the disk or a factor of the base, that is worth a rewrite. */
const gainShare = 1 / 32;
const tightGainShare = 1 / 128;
const gainOfBase = 1.05;
/** Factor for a rewritten log that is larger than the data in memory, and for writes during the rewrite. */
const growthFactor = 1.1;
/** Share of the disk that the old and the new log together may reach, below the level that blocks writes. */
const usableShare = 0.92;

const isTight = ({ freeBytes, totalBytes }: LogOnDisk) => freeBytes < totalBytes * tightShare;

/** True if the log is large enough for a rewrite, for data of any size. */
export function isLogLarge(log: LogOnDisk): boolean {
  return log.logBytes >= log.totalBytes * (isTight(log) ? tightGainShare : smallShare);
}

/** True if the log has grown so much that a rewrite gains something even if no data were deleted. */
export function hasLogGrown({ logBytes, baseBytes, totalBytes }: LogOnDisk): boolean {
  return logBytes - baseBytes >= totalBytes * gainShare;
}

/**
 * True if the log must be rewritten now. Valkey's own rule (`auto-aof-rewrite-percentage`) counts from the size
 * after the last rewrite, including writes during that rewrite, so under a fast writer the limit doubles until the disk
 * is full. This rule counts from the size of the data: rewrite at twice that size, or as long as the new log fits
 * beside the old one, and for any gain on a disk that is nearly full.
 */
export function isRewriteDue(log: LogOnDisk, dataBytes: number): boolean {
  const { logBytes, baseBytes, totalBytes, freeBytes } = log;
  if (!isLogLarge(log) || dataBytes * growthFactor > freeBytes) return false;
  const minimumGain = totalBytes * (isTight(log) ? tightGainShare : gainShare);
  if (logBytes - dataBytes < minimumGain) return false;
  // A log that was just rewritten has nothing to gain while the data are unchanged.
  if (logBytes < baseBytes * gainOfBase && dataBytes > baseBytes / 2) return false;
  if (isTight(log)) return true;
  const maxFittingBytes = usableShare * totalBytes - growthFactor * dataBytes;
  const limit = Math.min(
    Math.max(2 * dataBytes, totalBytes * smallShare),
    Math.max(maxFittingBytes * 0.9, dataBytes + minimumGain),
  );
  return logBytes >= limit;
}
