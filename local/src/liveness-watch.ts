import type { Clock } from "@holdfast/common/clock.ts";

export interface Liveness {
  /** Resolves when the process responded, with any response. */
  probe(signal: AbortSignal): Promise<void>;
  /** Interval between probes and time limit of each, in milliseconds. */
  readonly intervalMs: number;
  /** Silence after which the process counts as hanging, in milliseconds. */
  readonly hangsAfterMs: number;
}

/** Probes a process until closed; calls `hangs` once when it has not responded for `silenceLimitMs`. */
export function watchLiveness(
  { probe, intervalMs }: Pick<Liveness, "probe" | "intervalMs">,
  silenceLimitMs: number,
  on: { readonly responded: () => void; readonly hangs: () => void },
  monotonicMs: Clock["monotonicMs"],
): { close(): void } {
  let respondedAt = monotonicMs();
  let timer: NodeJS.Timeout | undefined;
  const closed = new AbortController();

  function runProbe(): void {
    probe(AbortSignal.any([closed.signal, AbortSignal.timeout(intervalMs)]))
      .then(() => {
        respondedAt = monotonicMs();
        on.responded();
      })
      // The process logs the reason itself.
      .catch(() => undefined)
      .finally(check);
  }
  function check(): void {
    if (closed.signal.aborted) return;
    if (monotonicMs() - respondedAt >= silenceLimitMs) on.hangs();
    else wait();
  }
  function wait(): void {
    timer = setTimeout(runProbe, intervalMs);
  }

  wait();
  return {
    close() {
      clearTimeout(timer);
      closed.abort();
    },
  };
}
