import type { Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { createTokenBuckets, type TakeResult, type TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";

/** Requests per second; 0: no limit. */
export interface RateLimitOptions {
  readonly reads: number;
  readonly changes: number;
  /** Calls about messages of queues. */
  readonly messages: number;
}

export type RateName = keyof RateLimitOptions;

/** The cost of a call: the rate that it is charged to, and the number of requests. */
export interface Cost {
  readonly rate: RateName;
  /** Number of requests that are charged; 1 for most methods. */
  readonly weight: number;
}

/** Limits the request rate of each credential and each organization by token buckets in the memory of this process. */
export interface RateLimit {
  /** Charges a call and sets the headers RateLimit-Limit, -Remaining and -Reset; throws RATE_LIMITED above the rate. */
  take(principal: Principal, cost: Cost, setHeader: (name: string, value: string) => void): void;
  /**
   * Charges for the size of a body, because parsing it delays other callers. The first 16 KiB are covered by `take`.
   * Throws RATE_LIMITED above the rate.
   */
  takeBody(principal: Principal, cost: Pick<Cost, "rate">, bytes: number): void;
}

/** Size of the burst, in seconds of the rate. */
const burstS = 10;
/** Size of the units by which bodies are charged; each unit, rounded up, costs one request. */
const bodyUnitBytes = 16 * 1024;
/** The rate of an organization, as a multiple of the rate of a credential. */
const organizationFactor = 5;

interface Kind {
  readonly credentials: TokenBuckets;
  readonly organizations: TokenBuckets;
  readonly noun: string;
}

export function createRateLimit({ reads, changes, messages }: RateLimitOptions, clock: Clock): RateLimit {
  const kindOf = (perSecond: number, noun: string): Kind | undefined => {
    if (perSecond === 0) return undefined;
    const all = perSecond * organizationFactor;
    return {
      credentials: createTokenBuckets({ perSecond, burst: perSecond * burstS }, clock.monotonicMs),
      organizations: createTokenBuckets({ perSecond: all, burst: all * burstS }, clock.monotonicMs),
      noun,
    };
  };
  const kinds: Readonly<Record<RateName, Kind | undefined>> = {
    reads: kindOf(reads, "reads"),
    changes: kindOf(changes, "changes"),
    messages: kindOf(messages, "calls about messages"),
  };

  function takeOf(
    { credentials, organizations, noun }: Kind,
    principal: Principal,
    weight: number,
    report: (result: TakeResult) => void,
  ) {
    const name = `${principal.kind}:${principal.id}`;
    const tokens = Math.min(weight, credentials.rate.burst);
    const ofCredential = credentials.take(name, tokens);
    report(ofCredential);
    if (ofCredential.waitS > 0)
      throw refusal(`This credential may make ${credentials.rate.perSecond} ${noun} a second`, ofCredential.waitS);
    const { organizationId } = principal;
    const ofOrganization = organizationId === undefined ? undefined : organizations.take(organizationId, weight);
    if (ofOrganization === undefined || ofOrganization.waitS === 0) return;
    credentials.refund(name, tokens);
    throw refusal(
      `All credentials of the organization may make ${organizations.rate.perSecond} ${noun} a second`,
      ofOrganization.waitS,
    );
  }

  return {
    take(principal, { rate, weight }, setHeader) {
      const kind = kinds[rate];
      if (kind === undefined) return;
      takeOf(kind, principal, weight, ({ remaining, fullInS }) => {
        setHeader("ratelimit-limit", String(kind.credentials.rate.burst));
        setHeader("ratelimit-remaining", String(remaining));
        setHeader("ratelimit-reset", String(fullInS));
      });
    },
    takeBody(principal, { rate }, bytes) {
      const kind = kinds[rate];
      const weight = Math.ceil(bytes / bodyUnitBytes) - 1;
      if (kind !== undefined && weight > 0) takeOf(kind, principal, weight, () => undefined);
    },
  };
}

function refusal(rule: string, waitS: number): HoldfastError {
  return new HoldfastError("RATE_LIMITED", `${rule}, with a burst of ${burstS} times as many.`, {
    retryAfterS: Math.ceil(waitS),
  });
}
