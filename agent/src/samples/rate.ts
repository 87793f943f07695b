/** What came of one counter in a second. */
export interface Rate {
  /**
   * `atMs` is monotonic. Undefined at the first look, after one without a value or too long ago, and when the counter began
   * anew: what came meanwhile is not known.
   */
  next(counter: number | undefined, atMs: number): number | undefined;
}

/** A look so long after the one before says nothing of the time in between. */
export function createRate(longestMs: number): Rate {
  let before: { readonly counter: number; readonly atMs: number } | undefined;
  return {
    next(counter, atMs) {
      const last = before;
      before = counter === undefined ? undefined : { counter, atMs };
      if (counter === undefined || last === undefined || counter < last.counter) return undefined;
      const elapsedMs = atMs - last.atMs;
      return elapsedMs <= 0 || elapsedMs > longestMs ? undefined : ((counter - last.counter) * 1_000) / elapsedMs;
    },
  };
}
