import type { Log } from "@holdfast/common/log.ts";
import type { Spares } from "./spares.ts";

/** Fills the stock of spares whenever no machine was made or started for a while. */
export interface Refill {
  /** A machine is being made: not now. */
  postpone(): void;
  /** Somebody waits for one. */
  begin(): void;
  /** Resolves when nothing of it runs. */
  close(): Promise<void>;
}

/** A machine that was just started needs the processors for longer than that. */
const usualQuietMs = 3_000;
/** What failed would most likely fail again at once. */
const retryMs = 60_000;

export function createRefill(spares: Spares, log: Log, quietMs = usualQuietMs): Refill {
  const closing = new AbortController();
  let running: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let notBeforeMs = 0;

  function begin(): void {
    if (performance.now() < notBeforeMs) return;
    running ??= spares
      .refill(closing.signal)
      .catch((error: unknown) => {
        if (closing.signal.aborted) return;
        notBeforeMs = performance.now() + retryMs;
        log.warn("spares not made", { error: error instanceof Error ? error.message : String(error) });
      })
      .finally(() => {
        running = undefined;
      });
  }

  function postpone(): void {
    clearTimeout(timer);
    timer = setTimeout(begin, quietMs);
    timer.unref();
  }

  postpone();
  return {
    postpone,
    begin,
    async close() {
      clearTimeout(timer);
      closing.abort();
      await running;
    },
  };
}
