import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { type DiskSpace, measureDisk } from "./disk-space.ts";
import { runProgram } from "./program.ts";

const mib = 1024 ** 2;

/** Disk space that clients may use, apart from the reserve for an engine that recovers on a full disk. */
export interface UsableSpace extends DiskSpace {
  /** Size of the file system, including the reserve. */
  readonly diskBytes: number;
  /** Space that a write finds free now. */
  readonly writableBytes: number;
  readonly reserve: {
    /** Intended size; 0 on a shared disk, which has no reserve. */
    readonly targetBytes: number;
    readonly allocatedBytes: number;
  };
}

/** Size of the reserve: two WAL segments of PostgreSQL, which its recovery and a TRUNCATE need; 1% of a larger disk. */
export function reserveBytesOf(totalBytes: number): number {
  const bytes = Math.min(Math.max(32 * mib, totalBytes / 100), 1024 * mib);
  return Math.floor(Math.min(bytes, totalBytes / 25) / mib) * mib;
}

/**
 * Measures the disk without its reserve, allocated or not: a disk must not look emptier while its reserve is in use.
 */
export async function measureUsable(path: string, storageBytes: number, signal: AbortSignal): Promise<UsableSpace> {
  const space = await measureDisk(path, storageBytes, signal);
  // Without a requested size the file system may be shared with other programs.
  const targetBytes = space.isSeparate && storageBytes > 0 ? reserveBytesOf(space.totalBytes) : 0;
  return withoutReserve(space, targetBytes, targetBytes === 0 ? 0 : await allocatedBytes(path));
}

/** The space apart from a reserve. */
export function withoutReserve(space: DiskSpace, targetBytes: number, allocatedBytes: number): UsableSpace {
  const { totalBytes, usedBytes, freeBytes, isSeparate } = space;
  return {
    isSeparate,
    totalBytes: totalBytes - targetBytes,
    usedBytes: usedBytes - allocatedBytes,
    freeBytes: Math.max(0, freeBytes - Math.max(0, targetBytes - allocatedBytes)),
    diskBytes: totalBytes,
    writableBytes: freeBytes,
    reserve: { targetBytes, allocatedBytes },
  };
}

/** Allocates the reserve, or grows it to this size. */
export async function takeReserve(path: string, bytes: number, signal: AbortSignal): Promise<void> {
  await runProgram(["fallocate", "--length", String(bytes), fileOf(path)], { signal });
}

export async function releaseReserve(path: string): Promise<void> {
  await rm(fileOf(path), { force: true });
}

async function allocatedBytes(path: string): Promise<number> {
  try {
    return (await lstat(fileOf(path))).blocks * 512;
  } catch {
    return 0;
  }
}

function fileOf(path: string): string {
  return join(path, "reserve");
}
