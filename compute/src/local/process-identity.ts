import { readFileSync } from "node:fs";

/** Unique identity of a process: pids are reused, a pid with start time and boot id is not. */
export interface ProcessIdentity {
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: clock ticks between boot and start. */
  readonly startTicks: string;
}

/** Fields of /proc/<pid>/stat. */
export interface ProcessStat extends ProcessIdentity {
  readonly parent: number;
  readonly state: string;
}

/** Id of the host's current boot; no process outlives it. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** Reads /proc/<pid>/stat; undefined if there is no such process. */
export function statOf(pid: number): ProcessStat | undefined {
  let text: string;
  try {
    text = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // There is no such process.
    return undefined;
  }
  // The name in parentheses may contain spaces and parentheses.
  const [state = "", parent = "0", ...fields] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return { pid, state, parent: Number(parent), startTicks: fields[17] ?? "" };
}

/** True if exactly this process runs. A zombie does not count: its resources are released. */
export function isAlive({ pid, startTicks }: ProcessIdentity): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTicks === startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** Sends the signal to exactly this process; false if it does not run. */
export function signalProcess(identity: ProcessIdentity, signal: NodeJS.Signals): boolean {
  if (!isAlive(identity)) return false;
  try {
    process.kill(identity.pid, signal);
    return true;
  } catch {
    // The process ended after the check.
    return false;
  }
}
