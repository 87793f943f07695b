import type { Clock } from "@holdfast/common/clock.ts";

export interface Liveness {
  /** Resolves when the process answered; any answer counts. */
  answers(signal: AbortSignal): Promise<void>;
  /** From one question to the next, and how long an answer may take. */
  readonly everyMs: number;
  /** Whoever answers nothing for so long hangs. */
  readonly hangsAfterMs: number;
}

/** Asks a process whether it lives until closed; calls `hangs`, once, when it has been silent for `patienceMs`. */
export function watchSilence(
  { answers, everyMs }: Pick<Liveness, "answers" | "everyMs">,
  patienceMs: number,
  on: { readonly answered: () => void; readonly hangs: () => void },
  monotonicMs: Clock["monotonicMs"],
): { close(): void } {
  let heardAt = monotonicMs();
  let timer: NodeJS.Timeout | undefined;
  const closed = new AbortController();

  function ask(): void {
    answers(AbortSignal.any([closed.signal, AbortSignal.timeout(everyMs)]))
      .then(() => {
        heardAt = monotonicMs();
        on.answered();
      })
      // Why it does not answer is in its own log.
      .catch(() => undefined)
      .finally(judge);
  }
  function judge(): void {
    if (closed.signal.aborted) return;
    if (monotonicMs() - heardAt >= patienceMs) on.hangs();
    else wait();
  }
  function wait(): void {
    timer = setTimeout(ask, everyMs);
  }

  wait();
  return {
    close() {
      clearTimeout(timer);
      closed.abort();
    },
  };
}
