import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DiskSpace, measureDisk } from "./disk-space.ts";
import { runProgram } from "./program.ts";

const mib = 1024 ** 2;

/** What clients may fill of a disk, and what is kept back of it for an engine that has to recover on a full one. */
export interface UsableSpace extends DiskSpace {
  /** The whole file system, with the reserve. */
  readonly diskBytes: number;
  /** What a write finds free at this moment. */
  readonly writableBytes: number;
  readonly reserve: {
    /** 0 on a shared disk, which has none. */
    readonly wantedBytes: number;
    readonly heldBytes: number;
  };
}

/** Two segments of PostgreSQL's log, which is what its recovery and a TRUNCATE take; 1% of a larger disk. */
export function reserveBytesOf(totalBytes: number): number {
  const wanted = Math.min(Math.max(32 * mib, totalBytes / 100), 1024 * mib);
  return Math.floor(Math.min(wanted, totalBytes / 25) / mib) * mib;
}

/**
 * The disk without its reserve, whether that is held or given away: a disk does not look emptier for a reserve that is in
 * use.
 */
export async function measureUsable(path: string, storageBytes: number, signal: AbortSignal): Promise<UsableSpace> {
  const space = await measureDisk(path, storageBytes, signal);
  // Without a size to hold it to, the file system is not known to be the engine's own.
  const wantedBytes = space.own && storageBytes > 0 ? reserveBytesOf(space.totalBytes) : 0;
  return withoutReserve(space, wantedBytes, wantedBytes === 0 ? 0 : await heldBytes(path));
}

/** Pure: the space beside a reserve. */
export function withoutReserve(space: DiskSpace, wantedBytes: number, held: number): UsableSpace {
  const { totalBytes, usedBytes, freeBytes, own } = space;
  return {
    own,
    totalBytes: totalBytes - wantedBytes,
    usedBytes: usedBytes - held,
    freeBytes: Math.max(0, freeBytes - Math.max(0, wantedBytes - held)),
    diskBytes: totalBytes,
    writableBytes: freeBytes,
    reserve: { wantedBytes, heldBytes: held },
  };
}

/** Makes the reserve this large; one that is there grows. */
export async function takeReserve(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  await runProgram(["fallocate", "--length", String(bytes), fileOf(path)], { signal });
}

export async function releaseReserve(path: string): Promise<void> {
  await rm(fileOf(path), { force: true });
}

async function heldBytes(path: string): Promise<number> {
  try {
    return (await lstat(fileOf(path))).blocks * 512;
  } catch {
    return 0;
  }
}

function fileOf(path: string): string {
  return join(path, "reserve");
}
