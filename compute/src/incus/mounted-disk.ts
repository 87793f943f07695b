import { chown, mkdir, rmdir, truncate } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { diskMountOptions } from "../local/data-disk.ts";
import { loopsOf, refreshLoops } from "../local/loop-device.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { isMounted } from "../local/mount-info.ts";
import { dataSource, instanceUsers } from "./instance-config.ts";

/** Mounts a machine's data disk on the host, where it remains mounted as long as the machine exists. */
export async function mountDisk(paths: MachinePaths): Promise<void> {
  await mkdir(paths.dataDirectory, { recursive: true, mode: 0o700 });
  if (!(await isMounted(paths.dataDirectory))) {
    const options = `loop,${diskMountOptions}`;
    await attempt("mounted", "mount", ["-t", "xfs", "-o", options, paths.diskFile, paths.dataDirectory], loopsInUse);
  }
  try {
    await mkdir(dataSource(paths), { mode: 0o700 });
    await chown(dataSource(paths), instanceUsers.engine, instanceUsers.engine);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/** Grows the disk and its file system while they are mounted; the machine sees the new size when this resolves. */
export async function growMountedDisk(paths: MachinePaths, diskBytes: number): Promise<void> {
  await truncate(paths.diskFile, diskBytes);
  await mountDisk(paths);
  await refreshLoops(paths.diskFile);
  await attempt("grown", "xfs_growfs", [paths.dataDirectory]);
}

/**
 * Unmounts the disk in every mount namespace. A namespace that was created after the mount, such as the namespace of a
 * container's monitor, has a copy of the mount, but removing the mount point unmounts all copies. The kernel frees the
 * loop device asynchronously, unless a program has a file of the disk open.
 */
export async function unmountDisk(paths: MachinePaths): Promise<void> {
  while (await isMounted(paths.dataDirectory)) await attempt("unmounted", "umount", [paths.dataDirectory]);
  try {
    await rmdir(paths.dataDirectory);
  } catch (error) {
    // The directory has files that were written while no disk was mounted; they remain.
    if (!hasCode(error, "ENOENT") && !hasCode(error, "ENOTEMPTY")) throw error;
  }
}

const closeTimeoutMs = 5_000;
const pollIntervalMs = 50;

/**
 * Runs the work while nothing on the host has the disk of a stopped machine open. If this process is killed, the
 * machine's next start mounts the disk, as after a reboot.
 */
export async function whileUnmounted(
  paths: MachinePaths,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await unmountDisk(paths);
    // The kernel frees the device asynchronously.
    for (let waitedMs = 0; (await loopsOf(paths.diskFile)).length > 0; waitedMs += pollIntervalMs) {
      if (waitedMs >= closeTimeoutMs) throw new ComputeFailure("A program of the host has the data disk open.");
      await sleep(pollIntervalMs, undefined, { signal });
    }
    await work();
  } finally {
    await mountDisk(paths);
  }
}

async function attempt(
  action: string,
  command: string,
  args: readonly string[],
  more?: () => Promise<string>,
): Promise<void> {
  try {
    await runProgram(command, args);
  } catch (error) {
    const detail = error instanceof Error ? (error.message.trim().split("\n").at(-1) ?? "") : String(error);
    const suffix = more === undefined ? "" : ` (${await more()})`;
    throw new ComputeFailure(`The data disk could not be ${action}: ${detail}${suffix}`, { cause: error });
  }
}

/** Appended to mount errors: a host can run out of loop devices. */
async function loopsInUse(): Promise<string> {
  const { stdout } = await runProgram("losetup", ["--all", "--noheadings", "--output", "NAME"]);
  return `${stdout.split("\n").filter((line) => line !== "").length} loop devices of the host are in use`;
}
