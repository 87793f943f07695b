/** So many at once, so many a second after that. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** A counter that says when somebody asks for too much. Costs two numbers and no timer. */
export interface TokenBucket {
  /** False when the amount is over the rate; nothing is taken then. */
  take(amount: number, nowMs: number): boolean;
  /** Takes the amount even if it is not there; answers in how many milliseconds it will be, 0 when it is. */
  spend(amount: number, nowMs: number): number;
}

export function createTokenBucket({ burst, perSecond }: Rate, startMs: number): TokenBucket {
  let level = burst;
  let at = startMs;

  function fill(nowMs: number): void {
    level = Math.min(burst, level + ((nowMs - at) * perSecond) / 1000);
    at = nowMs;
  }

  return {
    take(amount, nowMs) {
      fill(nowMs);
      if (level < amount) return false;
      level -= amount;
      return true;
    },
    spend(amount, nowMs) {
      fill(nowMs);
      level -= amount;
      return Math.max(0, (-level * 1_000) / perSecond);
    },
  };
}
