import { realpath, readdir, readFile, readlink } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { basename } from "node:path";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "../local/atomic-file.ts";
import { removeGroups } from "../local/control-groups.ts";
import { loopsOf } from "../local/loop-device.ts";
import { layoutOf, type MachinePaths, unfinishedIn } from "../local/machine-paths.ts";
import { requestStop, isRunning, killRun, type MachineRun, readRun } from "./machine-run.ts";
import { signalProcess, type ProcessIdentity, statOf } from "../local/process-identity.ts";

const pollIntervalMs = 5;
const signalIntervalMs = 250;

/**
 * Stops a machine: in order within graceMs, then by force. Resolves when no process, mount, loop device and control
 * group of it remains.
 */
export async function stopMachine(paths: MachinePaths, graceMs: number, signal?: AbortSignal): Promise<void> {
  const run = await readRun(paths.run);
  if (run !== undefined) await stopInOrder(run, graceMs, signal);
  for (let waitedMs = 0; await isOccupied(paths, run); waitedMs += pollIntervalMs) {
    if (run !== undefined && waitedMs % signalIntervalMs === 0) killRun(run);
    if (run?.isolation === "none") for (const stray of await straysOf(paths)) signalProcess(stray, "SIGKILL");
    await sleep(pollIntervalMs, undefined, { ...(signal && { signal }) });
  }
}

/**
 * Stops all machines of a provider's directory concurrently, and disks in preparation; resolves when no process, mount
 * and device of them remains. No controller may run during the call, because it would start them again.
 */
export async function stopAllMachines(directory: string, graceMs: number): Promise<void> {
  const layout = layoutOf(await realDirectory(directory));
  const ids = await namesIn(layout.running);
  const machines = ids.map((id) => stopMachine(layout.machine(id), graceMs));
  const unfinished = (await unfinishedIn(layout.preparedDisks)).map((paths) => stopMachine(paths, 0));
  await Promise.all([...machines, ...unfinished]);
}

async function realDirectory(directory: string): Promise<string> {
  // Loop devices name their files by real paths.
  return (await namesIn(directory)).length === 0 ? directory : realpath(directory);
}

/** Runs the work while the machine's disk is not in use; throws ComputeFailure if the machine runs. */
export async function whileStopped(
  id: string,
  paths: MachinePaths,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const run = await readRun(paths.run);
  if (run !== undefined && isRunning(run)) throw new ComputeFailure(`Machine ${id} runs.`);
  // Processes of a killed run may have the disk open.
  await stopMachine(paths, 0, signal);
  await work();
}

/** True if no process of this machine runs. Without namespaces, stray processes count. */
export async function isEmpty(paths: MachinePaths): Promise<boolean> {
  return !(await isOccupied(paths, await readRun(paths.run)));
}

async function stopInOrder(run: MachineRun, graceMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (let waitedMs = 0; waitedMs < graceMs && isRunning(run); waitedMs += pollIntervalMs) {
    // Sent repeatedly: the kernel drops the signal until the first process has its handler.
    if (waitedMs % signalIntervalMs === 0) requestStop(run);
    await sleep(pollIntervalMs, undefined, { ...(signal && { signal }) });
  }
}

async function isOccupied(paths: MachinePaths, run: MachineRun | undefined): Promise<boolean> {
  if (run !== undefined && isRunning(run)) return true;
  if (run?.isolation === "none" && (await straysOf(paths)).length > 0) return true;
  if ((await loopsOf(paths.diskFile)).length > 0) return true;
  // The record is read again, because a machine that was starting may have recorded its groups since.
  return !(await removeGroups((await readRun(paths.run))?.groups ?? []));
}

/**
 * Processes of a machine without namespaces, independent of their parent. They have its id in their environment or work
 * in its directory; a PostgreSQL backend overwrites its environment but not its directory.
 */
async function straysOf(paths: MachinePaths): Promise<ProcessIdentity[]> {
  const pids = (await readdir("/proc")).filter((name) => /^\d+$/.test(name)).map(Number);
  const stats = pids.filter((pid) => pid !== process.pid).flatMap((pid) => statOf(pid) ?? []);
  const belongs = await Promise.all(stats.map(async ({ pid, state }) => state !== "Z" && (await isOf(pid, paths))));
  return stats.filter((_, index) => belongs[index]);
}

async function isOf(pid: number, paths: MachinePaths): Promise<boolean> {
  try {
    const cwd = await readlink(`/proc/${pid}/cwd`);
    if (cwd === paths.directory || cwd.startsWith(`${paths.directory}/`)) return true;
    const environment = await readFile(`/proc/${pid}/environ`, "utf8");
    return environment.split("\0").includes(`HOLDFAST_MACHINE_ID=${basename(paths.directory)}`);
  } catch {
    // The process ended, or belongs to another user.
    return false;
  }
}
