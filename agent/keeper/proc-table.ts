import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** One process by number and start, so that a number used again is told apart. */
export interface ProcessId {
  readonly pid: number;
  /** Ticks since boot. */
  readonly startTicks: string;
}

interface ProcessStat extends ProcessId {
  readonly state: string;
  readonly parent: number;
  readonly group: number;
}

/** Numbers of all processes that this namespace shows. */
export function allPids(): number[] {
  return readdirSync("/proc").map(Number).filter(Number.isInteger);
}

/** Undefined for a process that is gone. */
export function statOf(pid: number): ProcessStat | undefined {
  const text = readOr(() => readFileSync(`/proc/${pid}/stat`, "latin1"));
  if (text === undefined) return undefined;
  // The name, in parentheses, may hold anything.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state = "", parent = "", group = ""] = fields;
  return { pid, state, parent: Number(parent), group: Number(group), startTicks: fields[19] ?? "" };
}

/** Linux counts CPU time for users in hundredths of a second, whatever its own clock is. */
const tickMs = 10;

/** CPU time in milliseconds of a process's first thread; undefined for one that is gone. */
export function firstThreadCpuMs(pid: number): number | undefined {
  const text = readOr(() => readFileSync(`/proc/${pid}/task/${pid}/stat`, "latin1"));
  const fields = text?.slice(text.lastIndexOf(")") + 2).split(" ");
  return fields && (Number(fields[11]) + Number(fields[12])) * tickMs;
}

/** Is it there and not just waiting to be reaped? */
export function isAlive({ pid, startTicks }: ProcessId): boolean {
  const stat = statOf(pid);
  return stat !== undefined && stat.startTicks === startTicks && stat.state !== "Z" && stat.state !== "X";
}

/** Target of a link below /proc/<pid>, such as `ns/pid` or `fd/1`; undefined when it cannot be read. */
export function linkOf(pid: number, name: string): string | undefined {
  return readOr(() => readlinkSync(`/proc/${pid}/${name}`));
}

/** A process may end between any two calls: then there is nothing to read. */
function readOr(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
