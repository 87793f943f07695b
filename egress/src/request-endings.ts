/** What ends one request: its deadline, or the signal of its caller. */
export interface RequestEnding {
  /** The deadline ended it. */
  isLate(): boolean;
  /** To be called once the request is over. */
  release(): void;
}

export interface RequestEndings {
  /** Calls `end` when the request has to end before its time. */
  begin(signal: AbortSignal, deadlineMs: number, end: () => void): RequestEnding;
}

export function createRequestEndings(): RequestEndings {
  /** Requests by the signal that ends them: one listener for all of them, since each further one makes a signal slower. */
  const bySignal = new WeakMap<AbortSignal, Set<() => void>>();

  function requestsOf(signal: AbortSignal): Set<() => void> {
    const known = bySignal.get(signal);
    if (known !== undefined) return known;
    const all = new Set<() => void>();
    bySignal.set(signal, all);
    signal.addEventListener("abort", () => all.forEach((end) => end()), { once: true });
    return all;
  }

  return {
    begin(signal, deadlineMs, end) {
      const all = requestsOf(signal);
      all.add(end);
      let late = false;
      const deadline = setTimeout(() => {
        late = true;
        end();
      }, deadlineMs);
      return {
        isLate: () => late,
        release() {
          clearTimeout(deadline);
          all.delete(end);
        },
      };
    },
  };
}
