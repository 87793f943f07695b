/** Delays between attempts, doubling up to a limit, each drawn at random so that a fleet does not come back as one. */
export interface BackOff {
  nextMs(): number;
  reset(): void;
}

export function createBackOff(firstMs: number, longestMs: number, random: () => number): BackOff {
  let limitMs = firstMs;
  return {
    nextMs() {
      const delayMs = limitMs * (0.5 + random() / 2);
      limitMs = Math.min(limitMs * 2, longestMs);
      return delayMs;
    },
    reset() {
      limitMs = firstMs;
    },
  };
}
