/** The deadline of one request. */
export interface RequestDeadline {
  /** True if the deadline passed. */
  isExpired(): boolean;
  /** Releases the timer and listener; call it when the request ends. */
  release(): void;
}

export interface RequestDeadlines {
  /** Calls `end` at the deadline or when the signal aborts. */
  start(signal: AbortSignal, deadlineMs: number, end: () => void): RequestDeadline;
}

export function createRequestDeadlines(): RequestDeadlines {
  /** Requests by signal. One listener serves all of them, since each additional listener makes a signal slower. */
  const bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  function requestsOf(signal: AbortSignal): Set<() => void> {
    const existing = bySignal.get(signal);
    if (existing !== undefined) return existing;
    const all = new Set<() => void>();
    bySignal.set(signal, all);
    signal.addEventListener("abort", () => all.forEach((end) => end()), { once: true });
    return all;
  }

  return {
    start(signal, deadlineMs, end) {
      const all = requestsOf(signal);
      all.add(end);
      let expired = false;
      const timer = setTimeout(() => {
        expired = true;
        end();
      }, deadlineMs);
      return {
        isExpired: () => expired,
        release() {
          clearTimeout(timer);
          all.delete(end);
        },
      };
    },
  };
}
