import { createTokenBuckets, takeTokens } from "@holdfast/common/concurrency/token-buckets.ts";
import { type MailRequester, perRequesterHour, sourceShare } from "./mail-shares.ts";

/**
 * Rate limit of mail requests of one app, in the memory of this process, so that refused requests need no SQL. It
 * counts all addresses alike, so a refusal does not reveal whether an address has a user.
 */
export interface MailRateLimit {
  /** False if the requester is above its limit, or above its limit for this address. */
  admits(email: string, requester: MailRequester): boolean;
}

const perSource = { perSecond: 300 / 600, burst: 300 };
const perHalfMinute = { perSecond: 1 / 30, burst: 1 };
const perHour = { perSecond: perRequesterHour / 3_600, burst: perRequesterHour };
const maxAddresses = 20_000;

export function createMailRateLimit(monotonicMs: () => number, mailsPerHour: number): MailRateLimit {
  const share = sourceShare(mailsPerHour);
  const rate = { perSecond: Math.min(perSource.perSecond, share / 3_600), burst: Math.min(perSource.burst, share) };
  const bySource = createTokenBuckets(rate, monotonicMs);
  const ofHalfMinute = createTokenBuckets(perHalfMinute, monotonicMs, maxAddresses);
  const ofHour = createTokenBuckets(perHour, monotonicMs, maxAddresses);
  return {
    admits(email, { source, kind }) {
      if (kind === "network" && !bySource.admits(source, 1)) return false;
      const shares = [ofHalfMinute, ofHour].map((buckets) => ({ buckets, name: `${email} ${source}`, tokens: 1 }));
      return takeTokens(shares).exceeded === undefined;
    },
  };
}
