import { type CountLimit, createKeyedCounter } from "./keyed-counter.ts";

/**
 * Shares a capacity, such as bytes or threads, among classes of users that each have a limit. A request waits until it
 * fits into all of its limits. Urgent requests are served first, then first come first served; a request that does not
 * fit is skipped, so a class at its limit delays no other. Serving reads all waiting requests: callers bound them.
 */
export interface CapacityQueue {
  /** Resolves once the request fits. Rejects with the reason of the signal. */
  acquire(request: CapacityRequest, signal?: AbortSignal): Promise<Capacity>;
  /** Undefined if the request would wait. */
  tryAcquire(request: CapacityRequest): Capacity | undefined;
  /** The amount in use under the key of a limit. */
  used(key: string): number;
}

export interface CapacityRequest {
  readonly limits: readonly CountLimit[];
  /** Units of capacity, 1 by default. A request of more than the smallest maximum of the limits never gets them. */
  readonly amount?: number;
  readonly isUrgent?: boolean;
}

export interface Capacity {
  /** Releases all but this amount. Capacity never grows. */
  shrink(amount: number): void;
  release(): void;
}

interface Waiting {
  readonly request: CapacityRequest;
  readonly resolve: (capacity: Capacity) => void;
}

export function createCapacityQueue(): CapacityQueue {
  const counter = createKeyedCounter();
  const urgent = new Set<Waiting>();
  const others = new Set<Waiting>();

  function tryAcquire({ limits, amount = 1 }: CapacityRequest): Capacity | undefined {
    if (counter.take(limits, amount).exceeded !== undefined) return undefined;
    let reserved = amount;
    const shrink = (least: number) => {
      const remaining = Math.min(reserved, least);
      for (const { key } of limits) counter.add(key, remaining - reserved);
      reserved = remaining;
      serve();
    };
    return { shrink, release: () => shrink(0) };
  }

  function serve(): void {
    for (const queue of [urgent, others])
      for (const waiting of queue) {
        const capacity = tryAcquire(waiting.request);
        if (capacity === undefined) continue;
        queue.delete(waiting);
        waiting.resolve(capacity);
      }
  }

  return {
    async acquire(request, signal) {
      signal?.throwIfAborted();
      const { promise, resolve, reject } = Promise.withResolvers<Capacity>();
      const queue = request.isUrgent === true ? urgent : others;
      const waiting: Waiting = { request, resolve };
      const cancel = () => {
        // A request that was already granted belongs to the caller, which releases its capacity.
        if (queue.delete(waiting)) reject(signal?.reason);
      };
      queue.add(waiting);
      signal?.addEventListener("abort", cancel, { once: true });
      serve();
      try {
        return await promise;
      } finally {
        signal?.removeEventListener("abort", cancel);
      }
    },
    tryAcquire,
    used: counter.of,
  };
}
