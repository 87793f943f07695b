import type { Principal } from "@holdfast/common/call.ts";
import { createKeyedCounter } from "@holdfast/common/concurrency/keyed-counter.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";

/** The largest number of concurrent things of one kind, for each credential, each organization and in all. */
export interface ConcurrencyLimits {
  readonly credential: number;
  readonly organization: number;
  readonly all: number;
}

/** Bounds how many things of one kind, such as streams, run at once. */
export interface ConcurrencyLimit {
  /** Returns the function that releases the slot; later calls of it do nothing. Throws RATE_LIMITED at a limit. */
  take(principal: Principal | undefined): () => void;
}

const retryAfterS = 5;

/** `noun` names the things in the error, in the plural: "streams". */
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
