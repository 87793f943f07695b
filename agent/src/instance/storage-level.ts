import type { DiskSpace } from "../os/disk-space.ts";

/**
 * Percent of the disk from which on its users are told more and more; from 95 on writes are blocked, from 99 on nobody
 * gets in.
 */
export const storageLevels = [0, 80, 85, 90, 95, 99] as const;
export type StorageLevel = (typeof storageLevels)[number];

/** A level is left only this far below it: a disk that moves around it is not told again and again. */
const slackPct = 2;

/** Pure: the level of the disk, by the one that it had before. */
export function storageLevelOf(
  { usedBytes, totalBytes }: Pick<DiskSpace, "usedBytes" | "totalBytes">,
  before: StorageLevel,
): StorageLevel {
  const usedPct = totalBytes === 0 ? 0 : (usedBytes / totalBytes) * 100;
  const reached = (level: StorageLevel) => usedPct >= level - (level <= before ? slackPct : 0);
  return storageLevels.findLast((level) => level === 0 || reached(level)) ?? 0;
}
