const firstMs = 100;
const longestMs = 10_000;
/** After a run of this length, the next failure starts from the shortest delay again. */
const stableRunMs = 30_000;

/** Exponential back-off between restarts of a component. */
export interface RestartBackOff {
  delayAfter(startedAt: number): number;
}

export function createRestartBackOff(now: () => number): RestartBackOff {
  let delayMs = 0;
  return {
    delayAfter(startedAt) {
      delayMs = now() - startedAt >= stableRunMs || delayMs === 0 ? firstMs : Math.min(delayMs * 2, longestMs);
      return delayMs;
    },
  };
}
