import { realpath } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { ComputeFailure } from "../compute-failure.ts";
import { namesIn } from "../local/atomic-file.ts";
import { removeGroups } from "../local/control-groups.ts";
import { loopsOf } from "../local/loop-device.ts";
import { layoutOf, type MachinePaths } from "../local/machine-paths.ts";
import { askToStop, isRunning, killRun, type MachineRun, readRun } from "./machine-run.ts";
import { signalProcess } from "../local/process-identity.ts";
import { makingsIn } from "../local/spare-directory.ts";
import { straysOf } from "./stray-processes.ts";

const lookEveryMs = 5;
const askEveryMs = 250;

/**
 * Stops what runs of a machine: in order within graceMs, then by force. It resolves when nothing of it is left: no
 * process, no mount, no loop device, no control group.
 */
export async function stopMachine(paths: MachinePaths, graceMs: number, signal?: AbortSignal): Promise<void> {
  const run = await readRun(paths.run);
  if (run !== undefined) await askUntilEmpty(run, graceMs, signal);
  for (let waitedMs = 0; await remains(paths, run); waitedMs += lookEveryMs) {
    if (run !== undefined && waitedMs % askEveryMs === 0) killRun(run);
    if (run?.isolation === "none") for (const stray of await straysOf(paths)) signalProcess(stray, "SIGKILL");
    await sleep(lookEveryMs, undefined, { ...(signal && { signal }) });
  }
}

/**
 * Stops every machine of a provider's directory, all at once, and ends spares in the making; resolves when nothing of any
 * is left. No controller may run meanwhile: it would start them again.
 */
export async function stopAllMachines(directory: string, graceMs: number): Promise<void> {
  const layout = layoutOf(await realDirectory(directory));
  const ids = await namesIn(layout.running);
  const machines = ids.map((id) => stopMachine(layout.machine(id), graceMs));
  const spares = (await makingsIn(layout.spares)).map((paths) => stopMachine(paths, 0));
  await Promise.all([...machines, ...spares]);
}

async function realDirectory(directory: string): Promise<string> {
  // Loop devices name their files by true paths.
  return (await namesIn(directory)).length === 0 ? directory : realpath(directory);
}

/** Does the work while the machine's disk is at rest; throws ComputeFailure when the machine runs. */
export async function whileStopped(
  id: string,
  paths: MachinePaths,
  signal: AbortSignal,
  work: () => Promise<void>,
): Promise<void> {
  const run = await readRun(paths.run);
  if (run !== undefined && isRunning(run)) throw new ComputeFailure(`Machine ${id} runs.`);
  // What a run that was killed left may have the disk open.
  await stopMachine(paths, 0, signal);
  await work();
}

/** Does nothing of this machine run? Strays count where there are no namespaces. */
export async function isEmpty(paths: MachinePaths): Promise<boolean> {
  return !(await remains(paths, await readRun(paths.run)));
}

async function askUntilEmpty(run: MachineRun, graceMs: number, signal: AbortSignal | undefined): Promise<void> {
  for (let waitedMs = 0; waitedMs < graceMs && isRunning(run); waitedMs += lookEveryMs) {
    // Asked again: before the first process has its handler, the kernel drops the signal.
    if (waitedMs % askEveryMs === 0) askToStop(run);
    await sleep(lookEveryMs, undefined, { ...(signal && { signal }) });
  }
}

async function remains(paths: MachinePaths, run: MachineRun | undefined): Promise<boolean> {
  if (run !== undefined && isRunning(run)) return true;
  if (run?.isolation === "none" && (await straysOf(paths)).length > 0) return true;
  if ((await loopsOf(paths.diskFile)).length > 0) return true;
  // Read again: one that was just launching when it was asked to stop had not noted them yet.
  return !(await removeGroups((await readRun(paths.run))?.groups ?? []));
}
