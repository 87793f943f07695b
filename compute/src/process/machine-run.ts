import { readIfThere } from "../local/atomic-file.ts";
import type { Isolation } from "../local/host-abilities.ts";
import { bootId, isAlive, type ProcessIdentity, signalProcess } from "../local/process-identity.ts";

/** One start of a machine, as it noted itself (launch-machine.sh, enter-machine.sh). */
export interface MachineRun {
  readonly bootId: string;
  readonly isolation: Isolation;
  /** In the host's namespace: waits for the machine and ends with it. */
  readonly launcher: ProcessIdentity;
  /** First process of the machine; absent when it was killed in its first millisecond. */
  readonly init: ProcessIdentity | undefined;
  /** Control groups that it is in. */
  readonly groups: readonly string[];
}

/** Undefined when no run of the machine is on record. */
export async function readRun(path: string): Promise<MachineRun | undefined> {
  const text = await readIfThere(path);
  return text === undefined ? undefined : parseRun(text);
}

/** Undefined for a file that was cut before it said anything. */
function parseRun(text: string): MachineRun | undefined {
  const rows = text.split("\n").map((line) => line.split(" "));
  const launcher = rows.find(([name]) => name === "launcher");
  const init = rows.find(([name]) => name === "init");
  const boot = launcher?.[3];
  const isolation = launcher?.[4];
  if (launcher === undefined || boot === undefined) return undefined;
  if (isolation !== "root" && isolation !== "user" && isolation !== "none") return undefined;
  const groups = rows.filter(([name]) => name === "group").map(([, ...path]) => path.join(" "));
  return { bootId: boot, isolation, launcher: identityOf(launcher), init: init && identityOf(init), groups };
}

/**
 * Does it run? The first process of a PID namespace ends, by the kernel's own order, after every other process of it: when
 * it is gone, the machine is empty. The launcher ends after that, unless it was killed before.
 */
export function isRunning(run: MachineRun): boolean {
  if (run.bootId !== bootId()) return false;
  return isAlive(run.launcher) || (run.init !== undefined && isAlive(run.init));
}

/** Can anything be run inside of it? Not any more once its first process ended, which its launcher outlives. */
export function hasInside(run: MachineRun): boolean {
  return run.bootId === bootId() && run.init !== undefined && isAlive(run.init);
}

/** Asks the machine to stop in order; false when there is nobody to ask. */
export function askToStop(run: MachineRun): boolean {
  return run.bootId === bootId() && run.init !== undefined && signalProcess(run.init, "SIGTERM");
}

/** Kills its first process; the kernel kills the rest of a namespace. */
export function killRun(run: MachineRun): void {
  if (run.bootId !== bootId()) return;
  if (run.init !== undefined) signalProcess(run.init, "SIGKILL");
  signalProcess(run.launcher, "SIGKILL");
}

function identityOf([, pid = "0", startTicks = ""]: readonly string[]): ProcessIdentity {
  return { pid: Number(pid), startTicks };
}
