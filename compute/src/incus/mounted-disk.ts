import { chown, mkdir, rmdir, truncate } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { runProgram } from "@holdfast/common/run-program.ts";
import { hasCode } from "@holdfast/common/system-error.ts";
import { ComputeFailure } from "../compute-failure.ts";
import { loopsOf, refreshLoops } from "../local/loop-device.ts";
import type { MachinePaths } from "../local/machine-paths.ts";
import { isMounted } from "../local/mount-info.ts";
import { dataSource, inside } from "./instance-config.ts";

/** Mounts the machine's data disk on the host, where it stays for as long as the machine exists. */
export async function mountDisk(paths: MachinePaths): Promise<void> {
  await mkdir(paths.dataDirectory, { recursive: true, mode: 0o700 });
  if (!(await isMounted(paths.dataDirectory))) {
    const options = "loop,noatime,nosuid,nodev";
    await attempt("mounted", "mount", ["-t", "xfs", "-o", options, paths.diskFile, paths.dataDirectory], loopsInUse);
  }
  try {
    await mkdir(dataSource(paths), { mode: 0o700 });
    await chown(dataSource(paths), inside.engine, inside.engine);
  } catch (error) {
    if (!hasCode(error, "EEXIST")) throw error;
  }
}

/** Makes the disk and its file system this large; the machine sees it at once. */
export async function growMountedDisk(paths: MachinePaths, diskBytes: number): Promise<void> {
  await truncate(paths.diskFile, diskBytes);
  await mountDisk(paths);
  await refreshLoops(paths.diskFile);
  await attempt("grown", "xfs_growfs", [paths.dataDirectory]);
}

/**
 * Unmounts it, in every program's view of the host. One that was given a view of its own meanwhile, as the monitor of each
 * container is, would keep the mount for as long as it runs; but a mount goes, in all views, with the directory that it is on.
 * The kernel frees the loop device a moment later, unless a program has something of the disk open.
 */
export async function unmountDisk(paths: MachinePaths): Promise<void> {
  while (await isMounted(paths.dataDirectory)) await attempt("unmounted", "umount", [paths.dataDirectory]);
  try {
    await rmdir(paths.dataDirectory);
  } catch (error) {
    // What somebody put there while no disk was mounted stays.
    if (!hasCode(error, "ENOENT") && !hasCode(error, "ENOTEMPTY")) throw error;
  }
}

const closedWithinMs = 5_000;
const lookEveryMs = 50;

/**
 * Does it while nothing of the host has the disk open: the machine is stopped. Whoever is killed meanwhile leaves it as a
 * reboot does, and the machine's next start mounts it.
 */
export async function whileUnmounted(
  paths: MachinePaths,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  try {
    await unmountDisk(paths);
    // The kernel frees the device a moment later.
    for (let waitedMs = 0; (await loopsOf(paths.diskFile)).length > 0; waitedMs += lookEveryMs) {
      if (waitedMs >= closedWithinMs) throw new ComputeFailure("Some program of the host keeps the data disk open.");
      await sleep(lookEveryMs, undefined, { signal });
    }
    await work();
  } finally {
    await mountDisk(paths);
  }
}

async function attempt(
  what: string,
  command: string,
  args: readonly string[],
  more?: () => Promise<string>,
): Promise<void> {
  try {
    await runProgram(command, args);
  } catch (error) {
    const detail = error instanceof Error ? (error.message.trim().split("\n").at(-1) ?? "") : String(error);
    const besides = more === undefined ? "" : ` (${await more()})`;
    throw new ComputeFailure(`The data disk could not be ${what}: ${detail}${besides}`, { cause: error });
  }
}

/** A host can run out of them. */
async function loopsInUse(): Promise<string> {
  const { stdout } = await runProgram("losetup", ["--all", "--noheadings", "--output", "NAME"]);
  return `${stdout.split("\n").filter((line) => line !== "").length} loop devices of the host are in use`;
}
