import { statfs } from "node:fs/promises";
import type { Admission } from "../compute-provider.ts";

const gib = 1024 ** 3;
const reserveBytesMin = 2 * gib;
const reserveShare = 0.05;

/** What a new machine writes before its user does: log of the file system, system tables, first segments of WAL. */
export const firstBytes = 256 * 1024 ** 2;

export interface SpaceFacts {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** What machines that were just made are still to write. */
  readonly promisedBytes: number;
}

export async function spaceOf(directory: string, promisedBytes: number): Promise<SpaceFacts> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, promisedBytes };
}

/**
 * Pure. Disks are sparse and may promise more than the host has; what it has must suffice for what is written soon, over a
 * reserve that keeps the machines that are here writing.
 */
export function admitDisk(diskBytes: number, { freeBytes, totalBytes, promisedBytes }: SpaceFacts): Admission {
  if (diskBytes > totalBytes) {
    const reason = `The host's disk has ${inGib(totalBytes)} GiB in all; ${inGib(diskBytes)} GiB were asked for.`;
    return { admitted: false, reason };
  }
  const reserveBytes = Math.max(reserveBytesMin, totalBytes * reserveShare);
  const neededBytes = reserveBytes + promisedBytes + firstBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's disk is too full: ${inGib(freeBytes)} GiB are free, a new machine needs ${inGib(neededBytes)} GiB to be.`;
  return { admitted: false, reason };
}

function inGib(bytes: number): string {
  return (bytes / gib).toFixed(1);
}
