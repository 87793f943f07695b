import { execFile } from "node:child_process";
import { chown, mkdir, open, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { promisify } from "node:util";
import { inImage } from "@holdfast/image/in-image.ts";
import { ComputeFailure } from "../compute-failure.ts";
import type { MachinePaths } from "./machine-paths.ts";
import type { MachineRecord } from "./machine-record.ts";
import { hasCode } from "./atomic-file.ts";

const run = promisify(execFile);
/** xfs refuses to be smaller. */
export const diskBytesMin = 300 * 1024 ** 2;

/** Makes an empty data disk; what was there goes. */
export async function makeDisk(
  paths: MachinePaths,
  disk: MachineRecord["disk"],
  diskBytes: number,
  uid: number | null,
  imageRoot: string | undefined,
): Promise<void> {
  if (disk === "directory") {
    await rm(paths.dataDirectory, { recursive: true, force: true });
    await mkdir(paths.dataDirectory, { mode: 0o700 });
    if (uid !== null) await chown(paths.dataDirectory, uid, uid);
    return;
  }
  await rm(paths.diskFile, { force: true });
  const file = await open(paths.diskFile, "wx", 0o600);
  await file.truncate(diskBytes);
  await file.close();
  await format(paths.diskFile, imageRoot);
}

/** Of a file system's log more than this is only space that the user does not get. */
const xfsOptions = ["-q", "-l", "size=64m"];

async function format(diskFile: string, imageRoot: string | undefined): Promise<void> {
  const argv = ["mkfs.xfs", ...xfsOptions, diskFile];
  try {
    await run("/usr/sbin/mkfs.xfs", argv.slice(1));
    return;
  } catch (error) {
    if (!hasCode(error, "ENOENT") || imageRoot === undefined)
      throw diskFailure("The data disk could not be made", error);
  }
  // The host has no xfsprogs; the image has.
  const launch = inImage(imageRoot, { argv, uid: 0, binds: [dirname(diskFile)], asRoot: true });
  await run(launch.command, launch.args).catch((error: unknown) => {
    throw diskFailure("The data disk could not be made", error);
  });
}

/** A disk could not be made or grown; the last line of what was said is the reason. */
export function diskFailure(what: string, error: unknown): ComputeFailure {
  const detail = error instanceof Error ? (error.message.trim().split("\n").at(-1) ?? "") : String(error);
  return new ComputeFailure(`${what}: ${detail}`, { cause: error });
}
