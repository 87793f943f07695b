/** So many at once, so many a second after that. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** A counter that says when somebody asks for too much. Costs two numbers and no timer. */
export interface TokenBucket {
  /** False when the amount is over the rate; nothing is taken then. */
  take(amount: number, nowMs: number): boolean;
}

export function createTokenBucket({ burst, perSecond }: Rate, startMs: number): TokenBucket {
  let level = burst;
  let at = startMs;
  return {
    take(amount, nowMs) {
      level = Math.min(burst, level + ((nowMs - at) * perSecond) / 1000);
      at = nowMs;
      if (level < amount) return false;
      level -= amount;
      return true;
    },
  };
}
