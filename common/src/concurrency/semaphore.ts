/** Bounds how many tasks run concurrently. Other tasks wait, first come first served. */
export interface Semaphore {
  /**
   * Runs the task once a permit is free and no earlier task waits. Rejects without running it if the queue is full, its
   * wait is over, or its signal aborts while it waits; a running task is not affected by the signal.
   */
  run<T>(work: () => Promise<T>, wait?: Wait): Promise<T>;
}

/** A semaphore for each key, which exists while tasks of the key run or wait. */
export interface KeyedSemaphore {
  run<T>(key: string, work: () => Promise<T>, wait?: Wait): Promise<T>;
}

/** Limits of a task's wait for a permit. Absent: no limit. */
export interface Wait {
  /** `run` rejects with its reason. */
  readonly signal?: AbortSignal | undefined;
  readonly waitMs?: number;
}

export interface SemaphoreOptions {
  /** Max number of waiting tasks; more are refused. Unlimited by default, for callers that are bounded. */
  readonly waitingMax?: number;
  /** The error of a refused task: the queue is full, or `waitMs` passed. */
  readonly refusal?: (reason: Refusal) => Error;
}

export type Refusal = "queue_full" | "wait_over";

interface Waiter {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export function createSemaphore(permits: number, options: SemaphoreOptions = {}): Semaphore {
  const { waitingMax = Number.POSITIVE_INFINITY, refusal = (reason) => new Error(reason) } = options;
  const waiting = new Set<Waiter>();
  let running = 0;

  async function acquire({ signal, waitMs }: Wait): Promise<void> {
    if (waiting.size >= waitingMax) throw refusal("queue_full");
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const waiter: Waiter = { resolve, reject };
    const abandon = (error: unknown) => {
      // A task that left the queue has its permit and runs.
      if (waiting.delete(waiter)) reject(error);
    };
    const onAbort = () => abandon(signal?.reason);
    const timer = waitMs === undefined ? undefined : setTimeout(() => abandon(refusal("wait_over")), waitMs);
    waiting.add(waiter);
    signal?.addEventListener("abort", onAbort, { once: true });
    try {
      await promise;
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", onAbort);
    }
  }

  /** Passes the permit directly to the next task, so that no later one overtakes it. */
  function release(): void {
    const [next] = waiting;
    if (next === undefined) running -= 1;
    else {
      waiting.delete(next);
      next.resolve();
    }
  }

  return {
    async run(work, wait = {}) {
      wait.signal?.throwIfAborted();
      if (running >= permits) await acquire(wait);
      else running += 1;
      try {
        return await work();
      } finally {
        release();
      }
    },
  };
}

/** Creates a semaphore for each key on demand. `permits` and `options` apply to each of them. */
export function createKeyedSemaphore(permits: number, options: SemaphoreOptions = {}): KeyedSemaphore {
  const lanes = new Map<string, { readonly semaphore: Semaphore; tasks: number }>();
  return {
    async run(key, work, wait) {
      const lane = lanes.get(key) ?? { semaphore: createSemaphore(permits, options), tasks: 0 };
      lanes.set(key, lane);
      lane.tasks += 1;
      try {
        return await lane.semaphore.run(work, wait);
      } finally {
        lane.tasks -= 1;
        if (lane.tasks === 0) lanes.delete(key);
      }
    },
  };
}
