/** Growth of one counter per second. */
export interface Rate {
  /**
   * `atMs` is monotonic. Undefined for the first reading, after a missing or too old one, and after a reset of the
   * counter.
   */
  next(counter: number | undefined, atMs: number): number | undefined;
}

/** `maxGapMs` is the longest time between two readings that gives a rate. */
export function createRate(maxGapMs: number): Rate {
  let before: { readonly counter: number; readonly atMs: number } | undefined;
  return {
    next(counter, atMs) {
      const last = before;
      before = counter === undefined ? undefined : { counter, atMs };
      if (counter === undefined || last === undefined || counter < last.counter) return undefined;
      const elapsedMs = atMs - last.atMs;
      return elapsedMs <= 0 || elapsedMs > maxGapMs ? undefined : ((counter - last.counter) * 1_000) / elapsedMs;
    },
  };
}
