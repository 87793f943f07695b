import type { Principal } from "@holdfast/common/call.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";

/** Maximum numbers of concurrent uses: per credential, per organization and in total. */
export interface ConcurrencyLimits {
  readonly credential: number;
  readonly organization: number;
  readonly all: number;
}

/** Limits how many uses of one kind, such as streams, run concurrently. */
export interface ConcurrencyLimit {
  /** Takes a permit and returns the idempotent function that releases it. Throws RATE_LIMITED at a limit. */
  take(principal: Principal | undefined): () => void;
}

const retryAfterS = 5;

/** Creates the limit. `noun` is the plural for the error message, such as `streams`. */
export function createConcurrencyLimit(limits: ConcurrencyLimits, noun: string): ConcurrencyLimit {
  const counter = createKeyedCounter();

  function limitsOf(principal: Principal | undefined) {
    const { organizationId } = principal ?? {};
    return [
      ...(principal === undefined
        ? []
        : [{ key: `${principal.kind}:${principal.id}`, max: limits.credential, owner: "This credential" }]),
      ...(organizationId === undefined
        ? []
        : [{ key: `org ${organizationId}`, max: limits.organization, owner: "The organization" }]),
      { key: "", max: limits.all, owner: "The installation" },
    ];
  }

  return {
    take(principal) {
      const taken = counter.take(limitsOf(principal));
      if (taken.exceeded === undefined) return taken.release;
      const { owner, max } = taken.exceeded;
      throw new HoldfastError("RATE_LIMITED", `${owner} has reached its limit of ${max} concurrent ${noun}.`, {
        retryAfterS,
      });
    },
  };
}
