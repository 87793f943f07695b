import { chown, mkdir, open, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { inImage } from "@holdfast/image/in-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { layoutOf, type MachinePaths, machinePaths } from "./machine-paths.ts";
import type { MachineRecord } from "./machine-record.ts";
import { makeWhole, namesIn } from "./atomic-file.ts";
import { placeIn, removePlaced } from "./storage-tiers.ts";

/** xfs refuses to be smaller. */
export const diskBytesMin = 300 * 1024 ** 2;

export interface DiskRequest {
  readonly kind: MachineRecord["disk"];
  readonly diskBytes: number;
  /** Owner of what is in it; null where it is this process's. */
  readonly uid: number | null;
  /** Has the means to format it, where the host has not. */
  readonly imageRoot: string | undefined;
  /** Directory of its storage tier, where that has one. */
  readonly tierDirectory: string | undefined;
}

/** Makes an empty data disk; what was there goes. A disk that is a file is there whole or not at all. */
export async function makeDisk(
  paths: Pick<MachinePaths, "diskFile" | "dataDirectory">,
  request: DiskRequest,
): Promise<void> {
  const { kind, diskBytes, uid, imageRoot, tierDirectory } = request;
  if (kind === "directory") {
    await removePlaced(paths.dataDirectory);
    const place = await placeIn(tierDirectory, paths.dataDirectory);
    await mkdir(place, { mode: 0o700 });
    if (uid !== null) await chown(place, uid, uid);
    return;
  }
  await removePlaced(paths.diskFile);
  const place = await placeIn(tierDirectory, paths.diskFile);
  await makeWhole(place, async (draft) => {
    await makeSparse(draft, diskBytes);
    await format(draft, imageRoot);
  });
}

/** Makes a file of zeros that takes no room. There is none of the name. */
export async function makeSparse(path: string, bytes: number): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.truncate(bytes);
  } finally {
    await file.close();
  }
}

/** Removes a directory in the shape of a machine with its data disk, wherever that is. */
export async function removeWithDisk(directory: string): Promise<void> {
  const { diskFile, dataDirectory } = machinePaths(directory, "");
  for (const path of [diskFile, dataDirectory]) await removePlaced(path);
  await rm(directory, { recursive: true, force: true });
}

/** Removes all machines and spares of a provider's directory with their disks; none may run. */
export async function removeAllDisks(directory: string): Promise<void> {
  const layout = layoutOf(directory);
  for (const id of await namesIn(layout.machines)) {
    const paths = layout.machine(id);
    for (const each of [paths.spare, paths.directory]) await removeWithDisk(each);
  }
  for (const kind of await namesIn(layout.spares)) {
    const parent = join(layout.spares, kind);
    for (const name of await namesIn(parent)) await removeWithDisk(join(parent, name));
  }
}

/** Of a file system's log more than this is only space that the user does not get. */
const xfsOptions = ["-q", "-l", "size=64m"];

async function format(diskFile: string, imageRoot: string | undefined): Promise<void> {
  const argv = ["mkfs.xfs", ...xfsOptions, diskFile];
  try {
    await runProgram("/usr/sbin/mkfs.xfs", argv.slice(1));
    return;
  } catch (error) {
    if (!hasCode(error, "ENOENT") || imageRoot === undefined)
      throw diskFailure("The data disk could not be made", error);
  }
  // The host has no xfsprogs; the image has.
  const launch = inImage(imageRoot, { argv, uid: 0, binds: [dirname(diskFile)], asRoot: true });
  await runProgram(launch.command, launch.args).catch((error: unknown) => {
    throw diskFailure("The data disk could not be made", error);
  });
}

/** A disk could not be made or grown; the last line of what was said is the reason. */
export function diskFailure(what: string, error: unknown): ComputeFailure {
  const detail = error instanceof Error ? (error.message.trim().split("\n").at(-1) ?? "") : String(error);
  return new ComputeFailure(`${what}: ${detail}`, { cause: error });
}
