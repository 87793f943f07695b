import { inBackground } from "@holdfast/common/background.ts";
import type { Log } from "@holdfast/common/log.ts";

/** Keys that wait for work, each at most once; one worker a key, a bounded number in all. */
export interface Queue {
  /** Work on the key soon. While it is worked on: once more after that. While it backs off: soon, but not at once. */
  add(key: string): void;
  /** Stops handing out keys; resolves when the last worker is done. */
  stop(): Promise<void>;
  /** Does it wait, is it worked on, or does it come later? */
  has(key: string): boolean;
  /** Number of keys that are due or worked on; keys that are due later are no backlog. */
  readonly size: number;
}

/** When to work on the key again, or that nothing is left to do. */
export type Next = "done" | Later;

interface Later {
  readonly afterMs: number;
  readonly backingOff?: boolean;
}

interface Waiting {
  timer: NodeJS.Timeout;
  dueAt: number;
  backingOff: boolean;
}

/**
 * A hint must not turn a failing key into a busy loop, nor keep an operator who repaired the cause waiting for a
 * minute.
 */
const hintDuringBackOffMs = 500;
const againAfterFaultMs = 5_000;

/** `work` deals with its own failures; a key whose work rejects all the same comes again after a while. */
export function createQueue(
  concurrency: number,
  monotonicMs: () => number,
  work: (key: string) => Promise<Next>,
  log: Pick<Log, "error">,
): Queue {
  const ready = new Set<string>();
  const later = new Map<string, Waiting>();
  const running = new Set<string>();
  const again = new Set<string>();
  let stopped = false;
  let onIdle: (() => void) | undefined;

  function schedule(key: string, { afterMs, backingOff = false }: Later): void {
    const dueAt = monotonicMs() + afterMs;
    const waiting = later.get(key);
    if (waiting !== undefined) {
      if (waiting.dueAt <= dueAt) return;
      clearTimeout(waiting.timer);
    }
    const timer = setTimeout(() => {
      later.delete(key);
      ready.add(key);
      pump();
    }, afterMs);
    later.set(key, { timer, dueAt, backingOff });
  }

  function add(key: string): void {
    if (stopped || ready.has(key)) return;
    if (running.has(key)) {
      again.add(key);
      return;
    }
    const waiting = later.get(key);
    if (waiting?.backingOff) return schedule(key, { afterMs: hintDuringBackOffMs, backingOff: true });
    if (waiting !== undefined) {
      clearTimeout(waiting.timer);
      later.delete(key);
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
    const next = await work(key).catch((error: unknown): Next => {
      log.error("work on a key rejected", { key, error });
      return { afterMs: againAfterFaultMs, backingOff: true };
    });
    running.delete(key);
    const hinted = again.delete(key);
    if (stopped) {
      if (running.size === 0) onIdle?.();
      return;
    }
    if (next !== "done") schedule(key, next);
    if (hinted) add(key);
    pump();
  }

  return {
    add,
    async stop() {
      stopped = true;
      for (const { timer } of later.values()) clearTimeout(timer);
      later.clear();
      ready.clear();
      if (running.size === 0) return;
      await new Promise<void>((resolve) => {
        onIdle = resolve;
      });
    },
    get size() {
      return ready.size + running.size;
    },
    has: (key) => ready.has(key) || later.has(key) || running.has(key),
  };
}
