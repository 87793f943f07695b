import { HoldfastError } from "@holdfast/common/errors.ts";

/** A source of revisions: the memory of a kind, or all of them together. */
export interface Progress {
  /** How far it is. */
  revision(): bigint;
  /** Asks etcd how far that is; the answer moves the revision. */
  ask(): void;
}

/** Waits for revisions. All of them share one timer, and each tick asks once for each progress that is waited for. */
export interface RevisionWaits {
  /** Resolves when it has the revision; rejects with STORE_UNAVAILABLE after timeoutMs. */
  reached(progress: Progress, wanted: bigint, timeoutMs: number): Promise<void>;
  /** Progress was made: satisfied waits resolve in the next turn of the event loop. */
  moved(): void;
}

interface Waiter {
  readonly wanted: bigint;
  ticksLeft: number;
  resolve(): void;
  reject(error: Error): void;
}

const askEveryMs = 100;

export function createRevisionWaits(): RevisionWaits {
  const waiting = new Map<Progress, Set<Waiter>>();
  let timer: NodeJS.Timeout | undefined;
  let checking = false;

  function forget(progress: Progress, waiters: Set<Waiter>, waiter: Waiter): void {
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
        if (revision < waiter.wanted) continue;
        forget(progress, waiters, waiter);
        waiter.resolve();
      }
    }
  }

  function tick(): void {
    for (const [progress, waiters] of waiting) {
      progress.ask();
      for (const waiter of waiters) {
        waiter.ticksLeft -= 1;
        if (waiter.ticksLeft > 0) continue;
        forget(progress, waiters, waiter);
        waiter.reject(new HoldfastError("STORE_UNAVAILABLE", "This replica has not seen the change yet."));
      }
    }
  }

  return {
    async reached(progress, wanted, timeoutMs) {
      if (progress.revision() >= wanted) return;
      const known = waiting.get(progress);
      const waiters = known ?? new Set<Waiter>();
      if (known === undefined) {
        waiting.set(progress, waiters);
        progress.ask();
      }
      timer ??= setInterval(tick, askEveryMs);
      await new Promise<void>((resolve, reject) => {
        waiters.add({ wanted, ticksLeft: Math.ceil(timeoutMs / askEveryMs), resolve, reject });
      });
    },
    moved() {
      if (checking || waiting.size === 0) return;
      checking = true;
      setImmediate(check);
    },
  };
}
