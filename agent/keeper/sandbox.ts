import { readFileSync, renameSync, writeFileSync } from "node:fs";

/** Isolation of one run of a component: signals its processes and reports whether any of them remains. */
export interface Sandbox {
  /** PID of the component's first process as seen by the keeper; undefined until it exists. */
  readonly pid: number | undefined;
  /** Signals the first process only. */
  signal(signal: NodeJS.Signals): void;
  /** Sends SIGKILL to all remaining processes. `isEmpty` still reports those that it missed. */
  killAll(): void;
  isEmpty(): boolean;
  /** Finds the remaining processes after the keeper itself was killed. */
  readonly trace: SandboxTrace;
  close(): void;
}

/** Identifies the processes of a run; stored in a file while the component runs. */
export interface SandboxTrace {
  readonly bootId: string;
  readonly pid: number;
  readonly startTicks: string;
  /** Inode of the standard output that the component's processes share. */
  readonly output: string;
}

/** Writes the trace atomically: a reader finds the complete trace or none, whenever this process is killed. */
export function writeTrace(path: string, trace: SandboxTrace): void {
  writeFileSync(`${path}.new`, JSON.stringify(trace), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

/** Undefined if there is no trace, or if a power failure truncated it, which no process survives. */
export function readTrace(path: string): SandboxTrace | undefined {
  try {
    return JSON.parse(readFileSync(path, "utf8")) as SandboxTrace;
  } catch (error) {
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
