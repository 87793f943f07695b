import { readFileSync } from "node:fs";

/** A process for good: pids come again, a pid with its start time and boot does not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: clock ticks between boot and start. */
  readonly startTicks: string;
}

/** What /proc says of a pid. */
export interface ProcessStat extends ProcessIdentity {
  readonly parent: number;
  readonly state: string;
}

/** Id of this boot of the host; no process outlives it. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Undefined when there is no such process. */
export function statOf(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // There is no such process.
    return undefined;
  }
  // The name in parentheses may hold anything, spaces and parentheses too.
  const [state = "", parent = "0", ...rest] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { pid, state, parent: Number(parent), startTicks: rest[17] ?? "" };
}

/** Does exactly this process run? A zombie does not: all that it had is gone. */
export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTicks === startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** Sends the signal to exactly this process; false when it does not run. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    // It ended in between.
    return false;
  }
}
