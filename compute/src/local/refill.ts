import type { Log } from "@holdfast/common/log.ts";
import type { PreparedDisks } from "./prepared-disks.ts";

/** Refills the prepared disks after a time without machine creations and starts. */
export interface Refill {
  /** Restarts the idle time: a machine is being created or started. */
  postpone(): void;
  /** Starts without waiting for the idle time, because a machine waits for a disk. */
  start(): void;
  /** Resolves when no work remains. */
  close(): Promise<void>;
}

/** Idle time before a refill: a machine that was just started needs the CPUs for a few seconds. */
const defaultIdleMs = 3_000;
/** Delay after a failure, which an immediate attempt would most likely repeat. */
const retryDelayMs = 60_000;

export function createRefill(preparedDisks: PreparedDisks, log: Log, idleMs = defaultIdleMs): Refill {
  const closing = new AbortController();
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let notBeforeMs = 0;

  function start(): void {
    if (performance.now() < notBeforeMs) return;
    running ??= preparedDisks
      .refill(closing.signal)
      .catch((error: unknown) => {
        if (closing.signal.aborted) return;
        notBeforeMs = performance.now() + retryDelayMs;
        log.warn("data disks not prepared", { error: error instanceof Error ? error.message : String(error) });
      })
      .finally(() => {
        running = undefined;
      });
  }

  function postpone(): void {
    clearTimeout(timer);
    timer = setTimeout(start, idleMs);
    timer.unref();
  }

  postpone();
  return {
    postpone,
    start,
    async close() {
      clearTimeout(timer);
      closing.abort();
      await running;
    },
  };
}
