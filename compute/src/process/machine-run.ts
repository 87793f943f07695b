import { readIfExists } from "../local/atomic-file.ts";
import type { Isolation } from "../local/host-abilities.ts";
import { bootId, isAlive, type ProcessIdentity, signalProcess } from "../local/process-identity.ts";

/** One start of a machine, as recorded by launch-machine.sh and enter-machine.sh. */
export interface MachineRun {
  readonly bootId: string;
  readonly isolation: Isolation;
  /** Process in the host's namespace that waits for the machine and ends with it. */
  readonly launcher: ProcessIdentity;
  /** First process of the machine; absent if it was killed in its first millisecond. */
  readonly init: ProcessIdentity | undefined;
  /** Control groups of the machine. */
  readonly groups: readonly string[];
}

/** Reads the latest start; undefined if none is recorded. */
export async function readRun(path: string): Promise<MachineRun | undefined> {
  const text = await readIfExists(path);
  return text === undefined ? undefined : parseRun(text);
}

/** Parses a record; undefined for a truncated file. */
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
 * True if the machine runs. The first process of a PID namespace ends after all others (pid_namespaces(7)): once it has
 * ended, the machine is empty. The launcher ends later, unless it was killed before.
 */
export function isRunning(run: MachineRun): boolean {
  if (run.bootId !== bootId()) return false;
  return isAlive(run.launcher) || (run.init !== undefined && isAlive(run.init));
}

/** True if programs can be started inside: until the first process ends, which may be before `isRunning` is false. */
export function canEnter(run: MachineRun): boolean {
  return run.bootId === bootId() && run.init !== undefined && isAlive(run.init);
}

/** Sends SIGTERM to the machine's first process; false if it does not run. */
export function requestStop(run: MachineRun): boolean {
  return run.bootId === bootId() && run.init !== undefined && signalProcess(run.init, "SIGTERM");
}

/** Kills the machine's first process; the kernel kills the others of its namespace. */
export function killRun(run: MachineRun): void {
  if (run.bootId !== bootId()) return;
  if (run.init !== undefined) signalProcess(run.init, "SIGKILL");
  signalProcess(run.launcher, "SIGKILL");
}

function identityOf([, pid = "0", startTicks = ""]: readonly string[]): ProcessIdentity {
  return { pid: Number(pid), startTicks };
}
