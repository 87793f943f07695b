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
