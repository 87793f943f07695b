/** Bounds how many tasks run concurrently. Further tasks wait, first come first served. */
export interface Semaphore {
  /**
   * Runs the task when a permit is free. If the signal aborts while the task waits, rejects with its reason; a running
   * task is not affected.
   */
  run<T>(work: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  /** Number of waiting tasks. */
  readonly waiting: number;
}

export function createSemaphore(concurrency: number): Semaphore {
  const waiting = new Set<() => void>();
  let running = 0;

  function acquire(signal: AbortSignal | undefined): Promise<void> {
    return new Promise((resolve, reject) => {
      const onAcquired = () => {
        signal?.removeEventListener("abort", onAbort);
        resolve();
      };
      const onAbort = () => {
        waiting.delete(onAcquired);
        reject(signal?.reason);
      };
      waiting.add(onAcquired);
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }

  return {
    get waiting() {
      return waiting.size;
    },
    async run(work, signal) {
      signal?.throwIfAborted();
      if (running >= concurrency) await acquire(signal);
      else running += 1;
      try {
        return await work();
      } finally {
        // The permit passes directly to the next task.
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
