import { chown, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { layoutOf, type MachinePaths, machinePaths } from "./machine-paths.ts";
import type { MachineRecord } from "./machine-record.ts";
import { createAtomically, namesIn } from "./atomic-file.ts";
import { createLocation, removeLocated } from "./storage-tiers.ts";

/** Minimum size of an XFS file system. */
export const minDiskBytes = 300 * 1024 ** 2;

export interface DiskRequest {
  readonly kind: MachineRecord["disk"];
  readonly diskBytes: number;
  /** Owner of the files on the disk; null for this process's user. */
  readonly uid: number | null;
  /** Image with the tools for formatting, if the host has none. */
  readonly imageRoot: string | undefined;
  /** Directory of the storage tier, if it has one. */
  readonly tierDirectory: string | undefined;
}

/** Creates an empty data disk and removes the previous one. A disk file appears complete or not at all. */
export async function createDisk(
  paths: Pick<MachinePaths, "diskFile" | "dataDirectory">,
  request: DiskRequest,
): Promise<void> {
  const { kind, diskBytes, uid, imageRoot, tierDirectory } = request;
  if (kind === "directory") {
    await removeLocated(paths.dataDirectory);
    const location = await createLocation(tierDirectory, paths.dataDirectory);
    await mkdir(location, { mode: 0o700 });
    if (uid !== null) await chown(location, uid, uid);
    return;
  }
  await removeLocated(paths.diskFile);
  const location = await createLocation(tierDirectory, paths.diskFile);
  await createAtomically(location, async (draft) => {
    await createSparseFile(draft, diskBytes);
    await format(draft, imageRoot);
  });
}

/** Creates a sparse file of zeros. The path must not exist. */
export async function createSparseFile(path: string, bytes: number): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.truncate(bytes);
  } finally {
    await file.close();
  }
}

/** Removes a directory in the layout of a machine with its data disk, wherever that is located. */
export async function removeWithDisk(directory: string): Promise<void> {
  const { diskFile, dataDirectory } = machinePaths(directory, "");
  for (const path of [diskFile, dataDirectory]) await removeLocated(path);
  await rm(directory, { recursive: true, force: true });
}

/** Removes all machines and prepared disks of a provider's directory; none may run. */
export async function removeAllDisks(directory: string): Promise<void> {
  const layout = layoutOf(directory);
  for (const id of await namesIn(layout.machines)) {
    const paths = layout.machine(id);
    for (const each of [paths.preparedDisk, paths.directory]) await removeWithDisk(each);
  }
  for (const kind of await namesIn(layout.preparedDisks)) {
    const parent = join(layout.preparedDisks, kind);
    for (const name of await namesIn(parent)) await removeWithDisk(join(parent, name));
  }
}

/**
 * Options of a mount of a data disk. By default, XFS allocates space beyond the end of each file that grows, up to as
 * much as its size, so that a disk of large files would seem full at two thirds.
 */
export const diskMountOptions = "noatime,nosuid,nodev,allocsize=256k";

/** Options of mkfs.xfs: the smallest log, because a larger one takes space from the user. */
const xfsOptions = ["-q", "-l", "size=64m"];

async function format(diskFile: string, imageRoot: string | undefined): Promise<void> {
  const argv = ["mkfs.xfs", ...xfsOptions, diskFile];
  try {
    await runProgram("/usr/sbin/mkfs.xfs", argv.slice(1));
    return;
  } catch (error) {
    if (!hasCode(error, "ENOENT") || imageRoot === undefined)
      throw diskFailure("The data disk could not be created", error);
  }
  // The host has no xfsprogs, so the programs of the image are used.
  const launch = inImage(imageRoot, { argv, uid: 0, binds: [dirname(diskFile)], asRoot: true });
  await runProgram(launch.command, launch.args).catch((error: unknown) => {
    throw diskFailure("The data disk could not be created", error);
  });
}

/** The error of a disk that could not be created or grown; the last line of the program's output is the reason. */
export function diskFailure(problem: string, error: unknown): ComputeFailure {
  const detail = error instanceof Error ? (error.message.trim().split("\n").at(-1) ?? "") : String(error);
  return new ComputeFailure(`${problem}: ${detail}`, { cause: error });
}
