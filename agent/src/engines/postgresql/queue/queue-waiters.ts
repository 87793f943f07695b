import { setTimeout as sleep } from "node:timers/promises";

/** Claims that wait for messages: told at once of what comes through this agent, and look themselves for what comes by SQL. */
export interface QueueWaiters {
  /** Resolves when something came, and after a while in any case. */
  next(queue: string, round: number, untilMs: number, signal: AbortSignal): Promise<void>;
  /** So many messages came: as many waiters look. */
  came(queue: string, messages: number): void;
}

const firstLookMs = 100;
const slowestLookMs = 1_000;

export function createQueueWaiters(): QueueWaiters {
  const waiting = new Map<string, Set<() => void>>();
  return {
    async next(queue, round, untilMs, signal) {
      const woken = new AbortController();
      const wake = () => woken.abort();
      const waiters = waiting.get(queue) ?? new Set();
      waiting.set(queue, waiters.add(wake));
      const afterMs = Math.max(0, Math.min(firstLookMs * 2 ** round, slowestLookMs, untilMs));
      await sleep(afterMs, undefined, { signal: AbortSignal.any([signal, woken.signal]) }).catch(() => undefined);
      waiters.delete(wake);
      if (waiters.size === 0) waiting.delete(queue);
      signal.throwIfAborted();
    },
    came(queue, messages) {
      for (const wake of [...(waiting.get(queue) ?? [])].slice(0, messages)) wake();
    },
  };
}
