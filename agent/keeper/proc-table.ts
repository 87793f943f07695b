import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Identifies a process by PID and start time, so that a reused PID differs. */
export interface ProcessId {
  readonly pid: number;
  /** Clock ticks since boot, field 22 of /proc/PID/stat (proc(5)). */
  readonly startTicks: string;
}

interface ProcessStat extends ProcessId {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
}

/** PIDs of all processes visible in this namespace. */
export function allPids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Undefined if the process has ended. */
export function statOf(pid: number): ProcessStat | undefined {
  const text = readOr(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (text === undefined) return undefined;
  // The command name, in parentheses, may contain blanks and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", parent = "", group = ""] = fields;
  return { pid, state, parent: Number(parent), group: Number(group), startTicks: fields[19] ?? "" };
}

/** USER_HZ is 100 on Linux and does not depend on the kernel's clock. */
const tickMs = 10;

/** CPU time of a process's first thread in milliseconds; undefined if the process has ended. */
export function firstThreadCpuMs(pid: number): number | undefined {
  const text = readOr(() => readFileSync(`/proc/${pid}/task/${pid}/stat`, "latin1"));
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields && (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** True while the process runs; false once it has ended, even if it is not reaped yet. */
export function isAlive({ pid, startTicks }: ProcessId): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTicks === startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** Target of a link below /proc/<pid>, such as `ns/pid` or `fd/1`; undefined when it cannot be read. */
export function linkOf(pid: number, name: string): string | undefined {
  return readOr(() => readlinkSync(`/proc/${pid}/${name}`));
}

/** A process may end between any two calls; there is nothing to read then. */
function readOr(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
