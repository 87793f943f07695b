/** Runs so many at a time; the others wait in the order they came. */
export interface Lane {
  run<T>(work: () => Promise<T>): Promise<T>;
  /** How many wait. */
  readonly waiting: number;
}

export function createLane(concurrency: number): Lane {
  const waiting: (() => void)[] = [];
  let running = 0;
  return {
    get waiting() {
      return waiting.length;
    },
    async run(work) {
      if (running >= concurrency) await new Promise<void>((resolve) => void waiting.push(resolve));
      else running += 1;
      try {
        return await work();
      } finally {
        // The place goes to the next one as it is.
        const next = waiting.shift();
        if (next === undefined) running -= 1;
        else next();
      }
    },
  };
}
