import type { Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";

export interface RateLimitOptions {
  /** 0 for no limit. */
  readonly requests: number;
  readonly windowMs: number;
}

/** Counts the requests of each credential in windows of time, in the memory of this process. */
export interface RateLimit {
  /** Tells the caller how many are left; throws RATE_LIMITED when none is. */
  take(principal: Principal, setHeader: (name: string, value: string) => void): void;
}

interface Count {
  requests: number;
}

const keptMax = 50_000;

export function createRateLimit({ requests, windowMs }: RateLimitOptions, clock: Clock): RateLimit {
  let counts = new Map<string, Count>();
  /** The same counts by who the authenticator says it is, which is one object for many requests. */
  let known = new WeakMap<Principal, Count>();
  let endsAt = 0;
  const limit = String(requests);

  function countOf(principal: Principal): Count {
    const name = `${principal.kind}:${principal.id}`;
    const count = counts.get(name) ?? { requests: 0 };
    if (counts.size < keptMax) counts.set(name, count);
    known.set(principal, count);
    return count;
  }

  return {
    take(principal, setHeader) {
      if (requests === 0) return;
      const now = clock.monotonicMs();
      if (now >= endsAt) {
        counts = new Map();
        known = new WeakMap();
        endsAt = now + windowMs;
      }
      const count = known.get(principal) ?? countOf(principal);
      count.requests += 1;
      const resetS = Math.ceil((endsAt - now) / 1_000);
      setHeader("ratelimit-limit", limit);
      setHeader("ratelimit-remaining", String(Math.max(0, requests - count.requests)));
      setHeader("ratelimit-reset", String(resetS));
      if (count.requests <= requests) return;
      const detail = `This credential has made ${requests} requests in ${windowMs / 1_000} seconds.`;
      throw new HoldfastError("RATE_LIMITED", detail, { retryAfterS: resetS });
    },
  };
}
