import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, rename, rm, stat, truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "./atomic-file.ts";
import { locationOf } from "./storage-tiers.ts";

/**
 * Infix before a snapshot's name. Files in the directory of a disk that begin with the disk's name are removed with the
 * disk (removeLocated).
 */
const infix = ".snapshot-";
/** Suffix of a snapshot that is being written, or whose writer was killed. */
const draft = ".draft";

/** Names of a disk file's snapshots; empty if there is no such file. */
export async function snapshotsOf(diskFile: string): Promise<string[]> {
  const location = await locationOf(diskFile);
  const prefix = basename(location) + infix;
  const names = await namesIn(dirname(location));
  return names.flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : [])).sort();
}

/**
 * Copies the disk within its directory by sharing blocks (reflink); the disk must not be in use. Does nothing if the
 * snapshot exists.
 */
export async function takeSnapshot(diskFile: string, name: string): Promise<void> {
  const location = await locationOf(diskFile);
  if ((await sizeOf(location + infix + name)) !== undefined) return;
  await replaceByClone(location, location + infix + name, location);
}

/** Replaces the disk's contents by the snapshot's in one step, at the disk's current size. The snapshot must exist. */
export async function restoreSnapshot(diskFile: string, name: string): Promise<void> {
  const location = await locationOf(diskFile);
  const { size } = await stat(location);
  await replaceByClone(location + infix + name, location, location, size);
}

/** Removes the snapshot, and the draft of a killed writer. Does nothing if there is none. */
export async function removeSnapshot(diskFile: string, name: string): Promise<void> {
  const location = await locationOf(diskFile);
  for (const path of [location + infix + name, location + draft]) await rm(path, { force: true });
}

/** Size of the snapshot's disk, bytes; undefined if there is no such snapshot. */
export async function snapshotSize(diskFile: string, name: string): Promise<number | undefined> {
  return sizeOf((await locationOf(diskFile)) + infix + name);
}

/** Upper bound of the space that a directory's snapshots take once they share no blocks any more, bytes. */
export async function snapshotBytesIn(directory: string): Promise<number> {
  const names = (await namesIn(directory)).filter((name) => name.includes(infix));
  const bytes = await Promise.all(names.map((name) => allocatedBytes(join(directory, name))));
  return bytes.reduce((sum, each) => sum + each, 0);
}

/** Allocated bytes of a file, without holes; 0 if it does not exist. */
export async function allocatedBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw error;
  }
}

/**
 * Replaces `to` by a clone of `from`. The clone is synced before the rename: a crash leaves the old file or the
 * complete clone.
 */
async function replaceByClone(from: string, to: string, location: string, sizeBytes = 0): Promise<void> {
  const written = location + draft;
  await rm(written, { force: true });
  try {
    await copyFile(from, written, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
  } catch (error) {
    throw isWithoutReflinks(error) ? new ComputeFailure(withoutReflinks, { cause: error }) : error;
  }
  const file = await open(written, "r+");
  try {
    if ((await file.stat()).size < sizeBytes) await file.truncate(sizeBytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(written, to);
  await syncPath(dirname(to));
}

const withoutReflinks =
  "The file system of the data disk cannot share blocks between files (XFS and btrfs can), so there are no snapshots.";

/** Reason why files of this directory cannot be cloned, by a trial; undefined if they can. */
export async function cloneRefusal(directory: string): Promise<string | undefined> {
  const probe = join(directory, `trial-${randomUUID()}`);
  try {
    const file = await open(probe, "w", 0o600);
    await file.close();
    await truncate(probe, 4_096);
    await copyFile(probe, probe + draft, constants.COPYFILE_FICLONE_FORCE);
    return undefined;
  } catch (error) {
    if (isWithoutReflinks(error)) return withoutReflinks;
    throw error;
  } finally {
    for (const path of [probe, probe + draft]) await rm(path, { force: true });
  }
}

function isWithoutReflinks(error: unknown): boolean {
  return ["ENOTSUP", "EOPNOTSUPP", "ENOTTY", "EINVAL", "EXDEV", "ENOSYS"].some((code) => hasCode(error, code));
}

async function sizeOf(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return undefined;
    throw error;
  }
}
