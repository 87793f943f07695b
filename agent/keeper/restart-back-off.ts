const firstDelayMs = 100;
const maxDelayMs = 10_000;
/** Length of a run after which the next failure starts from the first delay again. */
const stableRunMs = 30_000;

/** Exponential back-off between restarts of a component. */
export interface RestartBackOff {
  delayAfter(startedAt: number): number;
}

export function createRestartBackOff(now: () => number): RestartBackOff {
  let delayMs = 0;
  return {
    delayAfter(startedAt) {
      delayMs = now() - startedAt >= stableRunMs || delayMs === 0 ? firstDelayMs : Math.min(delayMs * 2, maxDelayMs);
      return delayMs;
    },
  };
}
