/**
 * Wait in milliseconds before the next attempt after `failures` consecutive ones. It grows exponentially; jitter keeps
 * clients that failed together from retrying together.
 */
export function backOffMs(
  failures: number,
  random: () => number,
  { initialMs = 100, maxMs = 60_000, factor = 2 } = {},
): number {
  const full = Math.min(maxMs, initialMs * factor ** Math.min(failures - 1, 30));
  return full / 2 + (full / 2) * random();
}

/** An exponential back-off that counts its failures. */
export interface BackOff {
  /** Counts a failure and returns the wait in milliseconds. */
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
