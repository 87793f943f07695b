import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";

/**
 * A work queue of keys, as in Kubernetes' client-go: a key is in it at most once, and one worker at a time handles it.
 * At most `concurrency` keys are worked on concurrently.
 */
export interface WorkQueue {
  /**
   * Schedules the key immediately. A key that is being worked on runs once more afterwards. A key in back-off runs
   * after `hintDuringBackOffMs`.
   */
  add(key: string): void;
  /** Starts no more work; resolves when the last worker has ended. */
  stop(): Promise<void>;
  /** True if the key is due, worked on, or scheduled for later. */
  has(key: string): boolean;
  /** Time of the key's next run, monotonic; undefined for a key that is not scheduled for later. */
  dueAt(key: string): number | undefined;
  /** Number of keys that are due or worked on, without keys that are scheduled for later. */
  readonly size: number;
  /** Number of keys that are worked on. */
  readonly running: number;
}

/** The delay until the key's next run, or "done". */
export type NextRun = "done" | Delay;

interface Delay {
  readonly afterMs: number;
  readonly backingOff?: boolean;
}

interface Waiting {
  timer: NodeJS.Timeout;
  dueAt: number;
  backingOff: boolean;
}

/**
 * Delay after a hint for a key in back-off. A hint must not turn a failing key into a busy loop, and an operator who
 * repaired the cause should not wait for the full back-off.
 */
const hintDuringBackOffMs = 500;
const retryAfterErrorMs = 5_000;

/** `work` handles its own failures. A key whose work still rejects runs again after `retryAfterErrorMs`. */
export function createWorkQueue(
  concurrency: number,
  monotonicMs: () => number,
  work: (key: string) => Promise<NextRun>,
  log: Pick<Log, "error">,
): WorkQueue {
  const ready = new Set<string>();
  const scheduled = new Map<string, Waiting>();
  const running = new Set<string>();
  const rerun = new Set<string>();
  let stopped = false;
  let onIdle: (() => void) | undefined;

  function schedule(key: string, { afterMs, backingOff = false }: Delay): void {
    const dueAt = monotonicMs() + afterMs;
    const waiting = scheduled.get(key);
    if (waiting !== undefined) {
      if (waiting.dueAt <= dueAt) return;
      clearTimeout(waiting.timer);
    }
    const timer = setTimeout(() => {
      scheduled.delete(key);
      ready.add(key);
      pump();
    }, afterMs);
    scheduled.set(key, { timer, dueAt, backingOff });
  }

  function add(key: string): void {
    if (stopped || ready.has(key)) return;
    if (running.has(key)) {
      rerun.add(key);
      return;
    }
    const waiting = scheduled.get(key);
    if (waiting?.backingOff) return schedule(key, { afterMs: hintDuringBackOffMs, backingOff: true });
    if (waiting !== undefined) {
      clearTimeout(waiting.timer);
      scheduled.delete(key);
    }
    ready.add(key);
    pump();
  }

  function pump(): void {
    for (const key of ready) {
      if (stopped || running.size >= concurrency) return;
      ready.delete(key);
      running.add(key);
      inBackground(log, "work on a key", run(key));
    }
  }

  async function run(key: string): Promise<void> {
    const next = await work(key).catch((error: unknown): NextRun => {
      log.error("run of a key failed", { key, error });
      return { afterMs: retryAfterErrorMs, backingOff: true };
    });
    running.delete(key);
    const wasHinted = rerun.delete(key);
    if (stopped) {
      if (running.size === 0) onIdle?.();
      return;
    }
    if (next !== "done") schedule(key, next);
    if (wasHinted) add(key);
    pump();
  }

  return {
    add,
    async stop() {
      stopped = true;
      for (const { timer } of scheduled.values()) clearTimeout(timer);
      scheduled.clear();
      ready.clear();
      if (running.size === 0) return;
      await new Promise<void>((resolve) => {
        onIdle = resolve;
      });
    },
    get size() {
      return ready.size + running.size;
    },
    get running() {
      return running.size;
    },
    dueAt: (key) => scheduled.get(key)?.dueAt,
    has: (key) => ready.has(key) || scheduled.has(key) || running.has(key),
  };
}
