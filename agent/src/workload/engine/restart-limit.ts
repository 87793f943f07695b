/** Limits restarts that may not help. Each one disconnects clients, so they become rarer. */
export interface RestartLimit {
  /** Returns true, and counts a restart, if one is allowed now. */
  tryAcquire(): boolean;
}

const firstWaitMs = 30_000;
const maxWaitMs = 600_000;

/**
 * The first restart is immediate; the next ones follow after 30 s, 1 min, 2 min and so on, up to 10 min. After twice
 * that the limit is reset.
 */
export function createRestartLimit(monotonicMs: () => number): RestartLimit {
  let last = { times: 0, at: Number.NEGATIVE_INFINITY };
  return {
    tryAcquire() {
      const agoMs = monotonicMs() - last.at;
      const times = agoMs > 2 * maxWaitMs ? 0 : last.times;
      if (times > 0 && agoMs < Math.min(firstWaitMs * 2 ** (times - 1), maxWaitMs)) return false;
      last = { times: times + 1, at: monotonicMs() };
      return true;
    },
  };
}
