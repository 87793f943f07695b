import { readFile, statfs } from "node:fs/promises";
import type { Admission } from "../compute-provider.ts";

const gib = 1024 ** 3;
const minReserveBytes = 2 * gib;
/** A small btrfs pool reports this much free space when writes already fail. */
const minPoolReserveBytes = gib / 2;
/** Share of a disk in reserve for writes of existing machines. */
const reserveShare = 0.05;
/** Share of the host's memory that must remain free when a machine of the warm pool is created. */
const aheadMemoryShare = 0.2;

/** Bytes that a new machine writes before its first user: file system log, system tables, first WAL segments. */
export const firstBytes = 256 * 1024 ** 2;

export interface SpaceFacts {
  readonly freeBytes: number;
  readonly totalBytes: number;
  /** Expected writes of new machines, bytes. */
  readonly pendingWriteBytes: number;
}

/** Current space of the directory's file system, with the bytes that younger machines and snapshots will write. */
export async function spaceOf(directory: string, pendingWriteBytes: number): Promise<SpaceFacts> {
  const { bavail, blocks, bsize } = await statfs(directory);
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize, pendingWriteBytes };
}

/**
 * Admits a disk of this size, which takes `initialBytes` at first. Disks are sparse, so their sizes may together exceed
 * the host's; the free space must suffice for the next writes, in addition to a reserve for existing machines.
 */
export function admitDisk(diskBytes: number, space: SpaceFacts, initialBytes = firstBytes): Admission {
  const { freeBytes, totalBytes, pendingWriteBytes } = space;
  if (diskBytes > totalBytes) {
    const reason = `The host's disk has ${inGib(totalBytes)} GiB in all; ${inGib(diskBytes)} GiB are requested.`;
    return { admitted: false, reason };
  }
  const neededBytes = reserveOf(totalBytes) + pendingWriteBytes + initialBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's disk is too full: ${inGib(freeBytes)} GiB are free, and a new machine needs ${inGib(neededBytes)} GiB.`;
  return { admitted: false, reason };
}

/**
 * Admits a root of this size, which takes `initialBytes` at first. The sizes of all roots may together exceed the pool,
 * but the size of one may not.
 */
export function admitRoot(rootBytes: number, space: SpaceFacts, initialBytes: number): Admission {
  const { freeBytes, totalBytes, pendingWriteBytes } = space;
  if (rootBytes > totalBytes) {
    const reason = `The host's storage pool has ${inGib(totalBytes)} GiB in all; a root of ${inGib(rootBytes)} GiB is requested.`;
    return { admitted: false, reason };
  }
  const reserveBytes = Math.max(minPoolReserveBytes, totalBytes * reserveShare);
  const neededBytes = reserveBytes + pendingWriteBytes + initialBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's storage pool is too full: ${inGib(freeBytes)} GiB of ${inGib(totalBytes)} GiB are free, and a new machine needs ${inGib(neededBytes)} GiB.`;
  return { admitted: false, reason };
}

/**
 * Admits a snapshot of a disk with this much data. It shares the disk's blocks, but later writes may unshare all
 * of them.
 */
export function admitSnapshot(
  allocatedBytes: number,
  { freeBytes, totalBytes, pendingWriteBytes }: SpaceFacts,
): Admission {
  const neededBytes = reserveOf(totalBytes) + pendingWriteBytes + allocatedBytes;
  if (freeBytes >= neededBytes) return { admitted: true };
  const reason = `The host's disk is too full for a snapshot: ${inGib(freeBytes)} GiB are free, and the snapshot may need ${inGib(neededBytes)} GiB.`;
  return { admitted: false, reason };
}

/** Total memory of the host, and the memory available to programs, bytes. */
export interface MemoryFacts {
  readonly totalBytes: number;
  readonly availableBytes: number;
}

/** Current memory of the host. */
export async function memoryOf(): Promise<MemoryFacts> {
  const text = await readFile("/proc/meminfo", "utf8");
  const bytesOf = (name: string) => Number(new RegExp(`^${name}: +(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024;
  return { totalBytes: bytesOf("MemTotal"), availableBytes: bytesOf("MemAvailable") };
}

/**
 * Admits a machine of the warm pool only with twice the reserve of disk space and a fifth of the memory free, so that
 * it is refused before a requested machine would be.
 */
export function admitForWarmPool(space: SpaceFacts, memory: MemoryFacts): Admission {
  const { freeBytes, totalBytes } = space;
  if (freeBytes - space.pendingWriteBytes < 2 * reserveOf(totalBytes) + firstBytes)
    return {
      admitted: false,
      reason: `The host has ${inGib(freeBytes)} GiB of free disk, which requested machines may need.`,
    };
  if (memory.availableBytes < memory.totalBytes * aheadMemoryShare)
    return { admitted: false, reason: `The host has ${inGib(memory.availableBytes)} GiB of free memory.` };
  return { admitted: true };
}

function reserveOf(totalBytes: number): number {
  return Math.max(minReserveBytes, totalBytes * reserveShare);
}

/** Size for users, in GiB with one decimal. */
export function inGib(bytes: number): string {
  return (bytes / gib).toFixed(1);
}
