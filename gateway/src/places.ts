import type { Principal } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";

/** How many things of one kind may go on at a time. */
export interface PlaceLimits {
  readonly credential: number;
  readonly organization: number;
  readonly all: number;
}

/** Things that go on for a while, such as streams, counted for each credential, each organization and in all. */
export interface Places {
  /** Takes a place until the function that it answers is called, once; throws RATE_LIMITED when none is free. */
  take(principal: Principal | undefined): () => void;
}

const retryAfterS = 5;

/** `what` is a noun in the plural: "streams". */
export function createPlaces(limits: PlaceLimits, what: string): Places {
  const taken = new Map<string, number>();

  function sharesOf(principal: Principal | undefined): [string, number, string][] {
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
      const shares = sharesOf(principal);
      for (const [name, max, whose] of shares) {
        if ((taken.get(name) ?? 0) < max) continue;
        throw new HoldfastError("RATE_LIMITED", `${whose} has all ${max} ${what} that it may have at a time.`, {
          retryAfterS,
        });
      }
      for (const [name] of shares) taken.set(name, (taken.get(name) ?? 0) + 1);
      let held = true;
      return () => {
        if (!held) return;
        held = false;
        for (const [name] of shares) {
          const left = (taken.get(name) ?? 0) - 1;
          if (left > 0) taken.set(name, left);
          else taken.delete(name);
        }
      };
    },
  };
}
