import type { Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createTokenBuckets, type Taken, type TokenBuckets } from "@holdfast/common/token-bucket.ts";

/** Requests in a second; 0 for no limit. */
export interface RateLimitOptions {
  readonly reads: number;
  readonly changes: number;
}

/** Cost of a call in the rate of its kind. */
export interface Cost {
  readonly readOnly: boolean;
  /** 1 for most. */
  readonly weight: number;
}

/** Paces the requests of each credential, and of each organization, in the memory of this process. */
export interface RateLimit {
  /** Tells the caller how much is left; throws RATE_LIMITED when that is not enough. */
  take(principal: Principal, cost: Cost, setHeader: (name: string, value: string) => void): void;
  /**
   * Charges for a body of so many bytes beyond a small one, which `take` covers: parsing it delays every other caller.
   * Throws RATE_LIMITED when that is not there.
   */
  takeBody(principal: Principal, cost: Pick<Cost, "readOnly">, bytes: number): void;
}

/** Seconds of its rate that a caller may use at once. */
const burstS = 10;
/** A body takes one of its rate for each so many bytes that are begun. */
const bodyUnitBytes = 16 * 1024;
/** An organization has the rate of so many credentials. */
const organizationFactor = 5;

interface Kind {
  readonly credentials: TokenBuckets;
  readonly organizations: TokenBuckets;
  readonly noun: string;
}

export function createRateLimit({ reads, changes }: RateLimitOptions, clock: Clock): RateLimit {
  const kindOf = (perSecond: number, noun: string): Kind | undefined => {
    if (perSecond === 0) return undefined;
    const all = perSecond * organizationFactor;
    return {
      credentials: createTokenBuckets({ perSecond, burst: perSecond * burstS }, clock.monotonicMs),
      organizations: createTokenBuckets({ perSecond: all, burst: all * burstS }, clock.monotonicMs),
      noun,
    };
  };
  const kinds = { reads: kindOf(reads, "reads"), changes: kindOf(changes, "changes") };

  function takeOf(
    { credentials, organizations, noun }: Kind,
    principal: Principal,
    weight: number,
    tell: (own: Taken) => void,
  ) {
    const own = credentials.take(`${principal.kind}:${principal.id}`, Math.min(weight, credentials.rate.burst));
    tell(own);
    if (own.waitS > 0)
      throw refusal(`This credential may make ${credentials.rate.perSecond} ${noun} a second`, own.waitS);
    const { organizationId } = principal;
    const shared = organizationId === undefined ? undefined : organizations.take(organizationId, weight);
    if (shared === undefined || shared.waitS === 0) return;
    throw refusal(
      `All credentials of the organization may make ${organizations.rate.perSecond} ${noun} a second`,
      shared.waitS,
    );
  }

  return {
    take(principal, { readOnly, weight }, setHeader) {
      const kind = readOnly ? kinds.reads : kinds.changes;
      if (kind === undefined) return;
      takeOf(kind, principal, weight, ({ left, fullInS }) => {
        setHeader("ratelimit-limit", String(kind.credentials.rate.burst));
        setHeader("ratelimit-remaining", String(left));
        setHeader("ratelimit-reset", String(fullInS));
      });
    },
    takeBody(principal, { readOnly }, bytes) {
      const kind = readOnly ? kinds.reads : kinds.changes;
      const weight = Math.ceil(bytes / bodyUnitBytes) - 1;
      if (kind !== undefined && weight > 0) takeOf(kind, principal, weight, () => undefined);
    },
  };
}

function refusal(rule: string, waitS: number): HoldfastError {
  return new HoldfastError("RATE_LIMITED", `${rule}, and ten seconds' worth at once.`, {
    retryAfterS: Math.ceil(waitS),
  });
}
