/** How much a bucket holds, and how fast it fills. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** Says when somebody asks for too much. Costs two numbers and no timer. */
export interface TokenBucket {
  /** False when the amount is over the rate; nothing is taken then. */
  take(amount: number, nowMs: number): boolean;
  /** Takes the amount even if it is not there; answers in how many milliseconds it will be, 0 when it is. */
  spend(amount: number, nowMs: number): number;
}

/** A bucket for each name, in bounded memory. */
export interface TokenBuckets {
  readonly rate: Rate;
  /** Takes so many tokens, or none when they are not all there. */
  take(name: string, tokens: number): Taken;
  /** Whether `take` took them. */
  admits(name: string, tokens: number): boolean;
  /** Gives back tokens that were taken for nothing. */
  giveBack(name: string, tokens: number): void;
}

export interface Taken {
  /** Whole tokens. */
  readonly left: number;
  /** Seconds until what was asked for would be there; 0 when it was taken. */
  readonly waitS: number;
  /** Seconds until the bucket is full, rounded up. */
  readonly fullInS: number;
}

interface Bucket {
  tokens: number;
  atMs: number;
}

const keptMax = 50_000;
const sweepEveryMs = 1_000;

export function createTokenBucket(rate: Rate, startMs: number): TokenBucket {
  const bucket = { tokens: rate.burst, atMs: startMs };
  return {
    take(amount, nowMs) {
      fill(bucket, rate, nowMs);
      if (bucket.tokens < amount) return false;
      bucket.tokens -= amount;
      return true;
    },
    spend(amount, nowMs) {
      fill(bucket, rate, nowMs);
      bucket.tokens -= amount;
      return Math.max(0, (-bucket.tokens * 1_000) / rate.perSecond);
    },
  };
}

/** `kept` is the number of names that have a bucket at a time. */
export function createTokenBuckets(rate: Rate, monotonicMs: () => number, kept = keptMax): TokenBuckets {
  const buckets = new Map<string, Bucket>();
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  function bucketOf(name: string, nowMs: number): Bucket {
    const known = buckets.get(name);
    if (known !== undefined) {
      fill(known, rate, nowMs);
      return known;
    }
    if (buckets.size >= kept) makeRoom(nowMs);
    const full = { tokens: rate.burst, atMs: nowMs };
    buckets.set(name, full);
    return full;
  }

  /** A bucket that is full again is as good as none. When all are in use the oldest goes. */
  function makeRoom(nowMs: number): void {
    // Names that are made up all the time must not cost a look at every bucket each.
    if (nowMs - sweptAtMs >= sweepEveryMs) {
      sweptAtMs = nowMs;
      for (const [name, bucket] of buckets) {
        fill(bucket, rate, nowMs);
        if (bucket.tokens >= rate.burst) buckets.delete(name);
      }
    }
    const oldest = buckets.keys().next();
    if (buckets.size >= kept && oldest.done !== true) buckets.delete(oldest.value);
  }

  function take(name: string, tokens: number): Taken {
    const bucket = bucketOf(name, monotonicMs());
    const missing = tokens - bucket.tokens;
    if (missing <= 0) bucket.tokens -= tokens;
    return {
      left: Math.max(0, Math.floor(bucket.tokens)),
      waitS: missing <= 0 ? 0 : missing / rate.perSecond,
      fullInS: Math.ceil((rate.burst - bucket.tokens) / rate.perSecond),
    };
  }

  return {
    rate,
    take,
    admits: (name, tokens) => take(name, tokens).waitS === 0,
    giveBack(name, tokens) {
      const bucket = buckets.get(name);
      if (bucket !== undefined) bucket.tokens = Math.min(rate.burst, bucket.tokens + tokens);
    },
  };
}

function fill(bucket: Bucket, { burst, perSecond }: Rate, nowMs: number): void {
  bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.atMs) * perSecond) / 1_000);
  bucket.atMs = nowMs;
}
