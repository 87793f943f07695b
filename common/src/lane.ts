/** Runs so many at a time; the others wait in the order they came. */
export interface Lane {
  /** Throws the signal's reason when that comes while the work waits; work that runs has a signal of its own. */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** How many wait. */
  readonly waiting: number;
}

export function createLane(concurrency: number): Lane {
  const waiting = new Set<() => void>();
  let running = 0;

  function turn(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onTurn = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        waiting.delete(onTurn);
        reject(signal?.reason);
      };
      waiting.add(onTurn);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  return {
    get waiting() {
      return waiting.size;
    },
    async run(work, signal) {
      signal?.throwIfAborted();
      if (running >= concurrency) await turn(signal);
      else running += 1;
      try {
        return await work();
      } finally {
        // The place goes to the next one as it is.
        const [next] = waiting;
        if (next === undefined) running -= 1;
        else {
          waiting.delete(next);
          next();
        }
      }
    },
  };
}
