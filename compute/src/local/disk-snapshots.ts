import { randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { copyFile, open, rename, rm, stat, truncate } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { syncPath } from "@holdfast/common/sync-path.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "./atomic-file.ts";
import { placeOf } from "./storage-tiers.ts";

/** Stands before a snapshot's name. All that is beside a disk and begins with the disk's name goes with it (removePlaced). */
const mark = ".snapshot-";
/** What is being written, and by nobody any more when its writer was killed. */
const draft = ".draft";

/** Names of the snapshots of a disk's file; none when there is no such file. */
export async function snapshotsOf(diskFile: string): Promise<string[]> {
  const place = await placeOf(diskFile);
  const prefix = basename(place) + mark;
  const names = await namesIn(dirname(place));
  return names.flatMap((name) => (name.startsWith(prefix) ? [name.slice(prefix.length)] : [])).sort();
}

/** Copies the disk beside itself by sharing its blocks; it must be at rest. Nothing happens when there is one of the name. */
export async function takeSnapshot(diskFile: string, name: string): Promise<void> {
  const place = await placeOf(diskFile);
  if ((await sizeOf(place + mark + name)) !== undefined) return;
  await replaceByClone(place, place + mark + name, place);
}

/** Makes the disk what the snapshot is, at its own size, as one. There must be such a snapshot. */
export async function restoreSnapshot(diskFile: string, name: string): Promise<void> {
  const place = await placeOf(diskFile);
  const { size } = await stat(place);
  await replaceByClone(place + mark + name, place, place, size);
}

/** Removes it, and what a killed writer left half written. Nothing happens when there is none of the name. */
export async function removeSnapshot(diskFile: string, name: string): Promise<void> {
  const place = await placeOf(diskFile);
  for (const path of [place + mark + name, place + draft]) await rm(path, { force: true });
}

/** Size of the disk that the snapshot is of, bytes; undefined when there is no such snapshot. */
export async function snapshotSize(diskFile: string, name: string): Promise<number | undefined> {
  return sizeOf((await placeOf(diskFile)) + mark + name);
}

/** What the snapshots in a directory could come to take, bytes: as much as they hold, once nothing is shared any more. */
export async function snapshotBytesIn(directory: string): Promise<number> {
  const names = (await namesIn(directory)).filter((name) => name.includes(mark));
  const bytes = await Promise.all(names.map((name) => heldBytes(join(directory, name))));
  return bytes.reduce((sum, one) => sum + one, 0);
}

/** Bytes that a file holds, without its holes; 0 when it is gone. */
export async function heldBytes(path: string): Promise<number> {
  try {
    return (await stat(path)).blocks * 512;
  } catch (error) {
    if (hasCode(error, "ENOENT")) return 0;
    throw error;
  }
}

/**
 * Clones `from` in the place of `to`. The clone is on the disk before it is renamed: a crash leaves the old file or the
 * whole clone.
 */
async function replaceByClone(from: string, to: string, place: string, sizeBytes = 0): Promise<void> {
  const written = place + draft;
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

/** Why files of this directory cannot be cloned, by trying; undefined when they can. */
export async function cloneRefusal(directory: string): Promise<string | undefined> {
  const trial = join(directory, `trial-${randomUUID()}`);
  try {
    const file = await open(trial, "w", 0o600);
    await file.close();
    await truncate(trial, 4_096);
    await copyFile(trial, trial + draft, constants.COPYFILE_FICLONE_FORCE);
    return undefined;
  } catch (error) {
    if (isWithoutReflinks(error)) return withoutReflinks;
    throw error;
  } finally {
    for (const path of [trial, trial + draft]) await rm(path, { force: true });
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
