/** Wait before the next try after `failures` failed ones in a row: growing, never the same for two that began together. */
export function backOffMs(
  failures: number,
  random: () => number,
  { initialMs = 100, maxMs = 60_000, factor = 2 } = {},
): number {
  const full = Math.min(maxMs, initialMs * factor ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random();
}

/** The same, with the failures counted. */
export interface BackOff {
  /** Counts a failure, and answers the wait. */
  nextMs(): number;
  reset(): void;
}

export function createBackOff(initialMs: number, maxMs: number, random: () => number): BackOff {
  let failures = 0;
  return {
    nextMs() {
      failures += 1;
      return backOffMs(failures, random, { initialMs, maxMs });
    },
    reset() {
      failures = 0;
    },
  };
}
