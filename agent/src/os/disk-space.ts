import { lstat, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";

export interface DiskSpace {
  readonly totalBytes: number;
  readonly usedBytes: number;
  readonly freeBytes: number;
  /** True if the engine has a separate disk. */
  readonly isSeparate: boolean;
}

/** A file system up to this factor larger than the requested storage counts as a separate disk. */
const slack = 1.15;

/**
 * Measures how much of the requested storage the engine's data uses. On a separate disk, the file system's figures
 * count. On a shared disk the sizes of files are added up, since the file system does not limit the engine.
 */
export async function measureDisk(path: string, storageBytes: number, signal: AbortSignal): Promise<DiskSpace> {
  const disk = await statfs(path);
  const totalBytes = disk.blocks * disk.bsize;
  const availableBytes = disk.bavail * disk.bsize;
  if (storageBytes === 0 || totalBytes <= storageBytes * slack) {
    return { totalBytes, usedBytes: totalBytes - availableBytes, freeBytes: availableBytes, isSeparate: true };
  }
  const usedBytes = await countBytes(path, signal);
  const freeBytes = Math.max(0, Math.min(storageBytes - usedBytes, availableBytes));
  const usedOrLost = Math.max(usedBytes, storageBytes - freeBytes);
  return { totalBytes: storageBytes, usedBytes: usedOrLost, freeBytes, isSeparate: false };
}

async function countBytes(directory: string, signal: AbortSignal): Promise<number> {
  let bytes = 0;
  for (const entry of await entriesOf(directory)) {
    signal.throwIfAborted();
    const path = join(directory, entry.name);
    if (entry.isDirectory()) bytes += await countBytes(path, signal);
    else bytes += await sizeOnDisk(path);
  }
  return bytes;
}

/** Entries of a directory. A directory that the engine has removed has none. */
async function entriesOf(directory: string) {
  try {
    return await readdir(directory, { withFileTypes: true });
  } catch {
    return [];
  }
}

async function sizeOnDisk(path: string): Promise<number> {
  try {
    return (await lstat(path)).blocks * 512;
  } catch {
    return 0;
  }
}
