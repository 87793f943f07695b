import { HoldfastError } from "@holdfast/common/errors.ts";

/** A source of revisions: one collection, or several together. */
export interface RevisionProgress {
  /** The revision that the source has loaded. */
  revision(): bigint;
  /** Requests a progress notification from etcd, which advances the revision. */
  requestProgress(): void;
}

/** Waits for revisions. All waits share one timer; each tick requests progress once for each source with waits. */
export interface RevisionWaits {
  /** Resolves when the source has the revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  untilRevision(progress: RevisionProgress, target: bigint, timeoutMs: number): Promise<void>;
  /** Call it when a source has advanced: satisfied waits resolve in the next iteration of the event loop. */
  advanced(): void;
}

interface Waiter {
  readonly target: bigint;
  remainingTicks: number;
  resolve(): void;
  reject(error: Error): void;
}

const requestIntervalMs = 100;

export function createRevisionWaits(): RevisionWaits {
  const waiting = new Map<RevisionProgress, Set<Waiter>>();
  let timer: NodeJS.Timeout | undefined;
  let checking = false;

  function removeWaiter(progress: RevisionProgress, waiters: Set<Waiter>, waiter: Waiter): void {
    waiters.delete(waiter);
    if (waiters.size > 0) return;
    waiting.delete(progress);
    if (waiting.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function check(): void {
    checking = false;
    for (const [progress, waiters] of waiting) {
      const revision = progress.revision();
      for (const waiter of waiters) {
        if (revision < waiter.target) continue;
        removeWaiter(progress, waiters, waiter);
        waiter.resolve();
      }
    }
  }

  function tick(): void {
    for (const [progress, waiters] of waiting) {
      progress.requestProgress();
      for (const waiter of waiters) {
        waiter.remainingTicks -= 1;
        if (waiter.remainingTicks > 0) continue;
        removeWaiter(progress, waiters, waiter);
        waiter.reject(
          new HoldfastError("STORE_UNAVAILABLE", "This controller has not received the change yet. Try again."),
        );
      }
    }
  }

  return {
    async untilRevision(progress, target, timeoutMs) {
      if (progress.revision() >= target) return;
      const existing = waiting.get(progress);
      const waiters = existing ?? new Set<Waiter>();
      if (existing === undefined) {
        waiting.set(progress, waiters);
        progress.requestProgress();
      }
      timer ??= setInterval(tick, requestIntervalMs);
      await new Promise<void>((resolve, reject) => {
        waiters.add({ target, remainingTicks: Math.ceil(timeoutMs / requestIntervalMs), resolve, reject });
      });
    },
    advanced() {
      if (checking || waiting.size === 0) return;
      checking = true;
      setImmediate(check);
    },
  };
}
