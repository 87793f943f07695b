import type { Principal } from "@holdfast/common/call.ts";
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
  const taken = new Map<string, number>();

  function countersOf(principal: Principal | undefined): [name: string, max: number, owner: string][] {
    const { organizationId } = principal ?? {};
    return [
      ...(principal === undefined
        ? []
        : [[`${principal.kind}:${principal.id}`, limits.credential, "This credential"] as [string, number, string]]),
      ...(organizationId === undefined
        ? []
        : [[`org ${organizationId}`, limits.organization, "The organization"] as [string, number, string]]),
      ["", limits.all, "The installation"],
    ];
  }

  return {
    take(principal) {
      const counters = countersOf(principal);
      for (const [name, max, owner] of counters) {
        if ((taken.get(name) ?? 0) < max) continue;
        throw new HoldfastError("RATE_LIMITED", `${owner} has reached its limit of ${max} concurrent ${noun}.`, {
          retryAfterS,
        });
      }
      for (const [name] of counters) taken.set(name, (taken.get(name) ?? 0) + 1);
      let isTaken = true;
      return () => {
        if (!isTaken) return;
        isTaken = false;
        for (const [name] of counters) {
          const remaining = (taken.get(name) ?? 0) - 1;
          if (remaining > 0) taken.set(name, remaining);
          else taken.delete(name);
        }
      };
    },
  };
}
