import { createSourceBuckets } from "@holdfast/common/concurrency/source-buckets.ts";
import type { SourceGroups } from "@holdfast/common/source-groups.ts";
import { createTokenBuckets, takeTokens } from "@holdfast/common/concurrency/token-buckets.ts";

/**
 * Rate limit of mail requests of one app, in the memory of this process, so that refused requests need no SQL. It
 * counts all addresses alike, so a refusal does not reveal whether an address has a user.
 */
export interface MailRateLimit {
  /** False if the address or the source is above its limit. */
  admits(email: string, address: string): boolean;
}

const perSource = { perSecond: 300 / 600, burst: 300 };
const perMoment = { perSecond: 1 / 30, burst: 1 };
const perHour = { perSecond: 5 / 3_600, burst: 5 };
const addressesMax = 20_000;

export function createMailRateLimit(monotonicMs: () => number, sources: SourceGroups): MailRateLimit {
  const bySource = createSourceBuckets({ ...perSource, sources }, monotonicMs);
  const ofMoment = createTokenBuckets(perMoment, monotonicMs, addressesMax);
  const ofHour = createTokenBuckets(perHour, monotonicMs, addressesMax);
  return {
    admits(email, address) {
      if (bySource.take(address).waitS > 0) return false;
      const shares = [ofMoment, ofHour].map((buckets) => ({ buckets, name: email, tokens: 1 }));
      return takeTokens(shares).exceeded === undefined;
    },
  };
}
