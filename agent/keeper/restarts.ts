const firstMs = 100;
const longestMs = 10_000;
/** A run of this length was a good one: the next failure starts from the shortest delay again. */
const goodRunMs = 30_000;

/** How long to wait before something that ended is started again. */
export interface Restarts {
  delayAfter(startedAt: number): number;
}

export function createRestarts(now: () => number): Restarts {
  let delayMs = 0;
  return {
    delayAfter(startedAt) {
      delayMs = now() - startedAt >= goodRunMs || delayMs === 0 ? firstMs : Math.min(delayMs * 2, longestMs);
      return delayMs;
    },
  };
}
