/** Starts of an engine that may not help: each one costs whoever is connected, so there are fewer and fewer of them. */
export interface NewStarts {
  /** True, and counted, when one may be begun now. */
  begin(): boolean;
}

const firstWaitMs = 30_000;
const longestWaitMs = 600_000;

/**
 * One at once; the next ones 30 s, 1 min, 2 min and so on after the one before, up to 10 min. After twice that all is
 * forgotten.
 */
export function createNewStarts(monotonicMs: () => number): NewStarts {
  let begun = { times: 0, at: Number.NEGATIVE_INFINITY };
  return {
    begin() {
      const agoMs = monotonicMs() - begun.at;
      const times = agoMs > 2 * longestWaitMs ? 0 : begun.times;
      if (times > 0 && agoMs < Math.min(firstWaitMs * 2 ** (times - 1), longestWaitMs)) return false;
      begun = { times: times + 1, at: monotonicMs() };
      return true;
    },
  };
}
