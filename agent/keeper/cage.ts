/** What is around one run of a component: how to reach it, and the only judge of whether it is empty. */
export interface Cage {
  /** The component's first process, as seen from here; undefined until it is there. */
  readonly pid: number | undefined;
  /** To the first process. */
  signal(signal: NodeJS.Signals): void;
  /** SIGKILL to all that is left; what it missed shows in isEmpty. */
  killAll(): void;
  isEmpty(): boolean;
  /** Enough to find what is left of it after the keeper itself was killed. */
  readonly trace: CageTrace;
  close(): void;
}

/** Kept in a file while the component runs. */
export interface CageTrace {
  readonly bootId: string;
  readonly pid: number;
  readonly startTicks: string;
  /** Inode of the standard output that the component's processes share. */
  readonly output: string;
}
