/** Capacity of a token bucket, and its refill rate. */
export interface Rate {
  readonly burst: number;
  readonly perSecond: number;
}

/** A token bucket. It costs two numbers and no timer. */
export interface TokenBucket {
  /** Takes the amount; false, without taking anything, if it exceeds the available tokens. */
  take(amount: number, nowMs: number): boolean;
  /** Takes the amount even if it is not available. Returns the milliseconds until it is; 0 if it was. */
  spend(amount: number, nowMs: number): number;
}

/** A token bucket for each name, in bounded memory. */
export interface TokenBuckets {
  readonly rate: Rate;
  /** Takes the tokens, or none if they are not all available. */
  take(name: string, tokens: number): TakeResult;
  /** True if `take` took the tokens. */
  admits(name: string, tokens: number): boolean;
  /** Returns tokens that were not used. */
  refund(name: string, tokens: number): void;
}

export interface TakeResult {
  /** Complete tokens that remain. */
  readonly remaining: number;
  /** Seconds until the requested tokens are available; 0 if they were taken. */
  readonly waitS: number;
  /** Seconds until the bucket is full, rounded up. */
  readonly fullInS: number;
}

interface Bucket {
  tokens: number;
  filledAtMs: number;
}

const bucketsMax = 50_000;
const sweepIntervalMs = 1_000;

/** The tokens that a request needs of one bucket. */
export interface TokenShare {
  readonly buckets: TokenBuckets;
  readonly name: string;
  readonly tokens: number;
}

export type TakenTokens<S> =
  | {
      readonly exceeded: undefined;
      /** Returns the tokens of all shares, which were not used. */
      refund(): void;
    }
  | {
      readonly exceeded: S;
      /** Seconds until the tokens of `exceeded` are available. */
      readonly waitS: number;
    };

/** Takes the tokens of every share, or of none: then `exceeded` is the first share whose bucket lacks tokens. */
export function takeTokens<S extends TokenShare>(shares: readonly S[]): TakenTokens<S> {
  const taken: S[] = [];
  const refund = () => {
    for (const { buckets, name, tokens } of taken.splice(0)) buckets.refund(name, tokens);
  };
  for (const share of shares) {
    const { waitS } = share.buckets.take(share.name, share.tokens);
    if (waitS > 0) {
      refund();
      return { exceeded: share, waitS };
    }
    taken.push(share);
  }
  return { exceeded: undefined, refund };
}

export function createTokenBucket(rate: Rate, startMs: number): TokenBucket {
  const bucket = { tokens: rate.burst, filledAtMs: startMs };
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

/** `max` is the maximum number of buckets in memory. */
export function createTokenBuckets(rate: Rate, monotonicMs: () => number, max = bucketsMax): TokenBuckets {
  const buckets = new Map<string, Bucket>();
  let sweptAtMs = Number.NEGATIVE_INFINITY;

  function bucketOf(name: string, nowMs: number): Bucket {
    const existing = buckets.get(name);
    if (existing !== undefined) {
      fill(existing, rate, nowMs);
      return existing;
    }
    if (buckets.size >= max) evict(nowMs);
    const full = { tokens: rate.burst, filledAtMs: nowMs };
    buckets.set(name, full);
    return full;
  }

  /** Drops full buckets, which equal new ones. If all are in use, drops the oldest. */
  function evict(nowMs: number): void {
    // A flood of invented names must not cause a scan of all buckets for each of them.
    if (nowMs - sweptAtMs >= sweepIntervalMs) {
      sweptAtMs = nowMs;
      for (const [name, bucket] of buckets) {
        fill(bucket, rate, nowMs);
        if (bucket.tokens >= rate.burst) buckets.delete(name);
      }
    }
    const oldest = buckets.keys().next();
    if (buckets.size >= max && oldest.done !== true) buckets.delete(oldest.value);
  }

  function take(name: string, tokens: number): TakeResult {
    const bucket = bucketOf(name, monotonicMs());
    const missing = tokens - bucket.tokens;
    if (missing <= 0) bucket.tokens -= tokens;
    return {
      remaining: Math.max(0, Math.floor(bucket.tokens)),
      waitS: missing <= 0 ? 0 : missing / rate.perSecond,
      fullInS: Math.ceil((rate.burst - bucket.tokens) / rate.perSecond),
    };
  }

  return {
    rate,
    take,
    admits: (name, tokens) => take(name, tokens).waitS === 0,
    refund(name, tokens) {
      const bucket = buckets.get(name);
      if (bucket !== undefined) bucket.tokens = Math.min(rate.burst, bucket.tokens + tokens);
    },
  };
}

function fill(bucket: Bucket, { burst, perSecond }: Rate, nowMs: number): void {
  bucket.tokens = Math.min(burst, bucket.tokens + ((nowMs - bucket.filledAtMs) * perSecond) / 1_000);
  bucket.filledAtMs = nowMs;
}
