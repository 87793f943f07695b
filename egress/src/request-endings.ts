/** What ends one request: its deadline, or the signal of its caller. */
export interface RequestEnding {
  readonly signal: AbortSignal;
  /** The deadline ended it. */
  isLate(): boolean;
  /** To be called once the request is over. */
  release(): void;
}

export interface RequestEndings {
  begin(signal: AbortSignal, deadlineMs: number): RequestEnding;
}

export function createRequestEndings(): RequestEndings {
  /** Requests by the signal that ends them: one listener for all of them, since each further one makes a signal slower. */
  const bySignal = new WeakMap<AbortSignal, Set<AbortController>>();

  function endWith(signal: AbortSignal, ending: AbortController): () => void {
    const all = bySignal.get(signal) ?? new Set();
    if (!bySignal.has(signal)) {
      bySignal.set(signal, all);
      signal.addEventListener("abort", () => all.forEach((each) => each.abort(signal.reason)), { once: true });
    }
    all.add(ending);
    return () => void all.delete(ending);
  }

  return {
    begin(signal, deadlineMs) {
      // One signal of its own for each request: composed ones cost more than the request itself.
      const ending = new AbortController();
      const forget = endWith(signal, ending);
      let late = false;
      const deadline = setTimeout(() => {
        late = true;
        ending.abort();
      }, deadlineMs);
      return {
        signal: ending.signal,
        isLate: () => late,
        release() {
          clearTimeout(deadline);
          forget();
        },
      };
    },
  };
}
