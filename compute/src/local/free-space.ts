import { readFile, statfs } from "node:fs/promises";
import type { Admission } from "../compute-provider.ts";

const gib = 1024 ** 3;
const reserveBytesMin = 2 * gib;
/** Of a small pool of btrfs so much still looks free when nothing can be written any more. */
const poolReserveBytesMin = gib / 2;
/** Machines that are here write too. */
const reserveShare = 0.05;
/** So much of the host's memory stays free of machines that nobody wants yet. */
const spareMemoryShare = 0.2;

/** What a new machine writes before its user does: log of the file system, system tables, first segments of WAL. */
export const firstBytes = 256 * 1024 ** 2;

export interface SpaceFacts {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** What machines that were just made are still to write. */
  readonly promisedBytes: number;
}

/** Space of the directory's file system now, with what is promised of it. */
export async function spaceOf(directory: string, promisedBytes: number): Promise<SpaceFacts> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, promisedBytes };
}

/**
 * Pure. Disks are sparse and may promise more than the host has; what it has must suffice for what is written soon, over a
 * reserve that keeps the machines that are here writing.
 */
export function admitDisk(diskBytes: number, space: SpaceFacts, atOnceBytes = firstBytes): Admission {
  const { freeBytes, totalBytes, promisedBytes } = space;
  if (diskBytes > totalBytes) {
    const reason = `The host's disk has ${inGib(totalBytes)} GiB in all; ${inGib(diskBytes)} GiB were asked for.`;
    return { admitted: false, reason };
  }
  const neededBytes = reserveOf(totalBytes) + promisedBytes + atOnceBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's disk is too full: ${inGib(freeBytes)} GiB are free, a new machine needs ${inGib(neededBytes)} GiB to be.`;
  return { admitted: false, reason };
}

/**
 * Pure: may a root of this size be made where roots are, of which a new one takes `atOnceBytes`? Roots are as sparse as data
 * disks: together they may promise more than there is, no single one may.
 */
export function admitRoot(rootBytes: number, space: SpaceFacts, atOnceBytes: number): Admission {
  const { freeBytes, totalBytes, promisedBytes } = space;
  if (rootBytes > totalBytes) {
    const reason = `The host's storage pool has ${inGib(totalBytes)} GiB in all; a root of ${inGib(rootBytes)} GiB was asked for.`;
    return { admitted: false, reason };
  }
  const reserveBytes = Math.max(poolReserveBytesMin, totalBytes * reserveShare);
  const neededBytes = reserveBytes + promisedBytes + atOnceBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's storage pool is too full: ${inGib(freeBytes)} GiB of ${inGib(totalBytes)} GiB are free, a new machine needs ${inGib(neededBytes)} GiB to be.`;
  return { admitted: false, reason };
}

/** Pure: may a snapshot of a disk that holds so much be taken? It shares the disk's space, but need not for long. */
export function admitSnapshot(heldBytes: number, { freeBytes, totalBytes, promisedBytes }: SpaceFacts): Admission {
  const neededBytes = reserveOf(totalBytes) + promisedBytes + heldBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's disk is too full for a snapshot: ${inGib(freeBytes)} GiB are free, it could come to need ${inGib(neededBytes)} GiB.`;
  return { admitted: false, reason };
}

/** What the host has of memory, and how much of it is free for programs, in bytes. */
export interface MemoryFacts {
  readonly totalBytes: number;
  readonly availableBytes: number;
}

/** Memory of the host now. */
export async function memoryOf(): Promise<MemoryFacts> {
  const text = await readFile("/proc/meminfo", "utf8");
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: bytesOf("MemTotal"), availableBytes: bytesOf("MemAvailable") };
}

/**
 * Pure. A machine that nobody wants yet takes neither disk nor memory that others may need soon: it is gone long before one
 * that is wanted is refused.
 */
export function admitAhead(space: SpaceFacts, memory: MemoryFacts): Admission {
  const { freeBytes, totalBytes } = space;
  if (freeBytes - space.promisedBytes < 2 * reserveOf(totalBytes) + firstBytes)
    return { admitted: false, reason: `The host has ${inGib(freeBytes)} GiB of disk left for those that are wanted.` };
  if (memory.availableBytes < memory.totalBytes * spareMemoryShare)
    return { admitted: false, reason: `The host has ${inGib(memory.availableBytes)} GiB of memory left.` };
  return { admitted: true };
}

function reserveOf(totalBytes: number): number {
  return Math.max(reserveBytesMin, totalBytes * reserveShare);
}

/** As users read sizes: to a tenth. */
export function inGib(bytes: number): string {
  return (bytes / gib).toFixed(1);
}
