import type { Entrance } from "./entrance.ts";
import type { GatewayDeps } from "./gateway-deps.ts";
import { createPlaces } from "./places.ts";
import { revisionWaitMs } from "./request-headers.ts";

/**
 * Far above the needs of a client that reads its own writes: a wait ends in milliseconds unless etcd or this controller
 * lags.
 */
const usualLimits = { credential: 64, organization: 256, all: 2_000 };

/** Reads that ask for a revision wait for it, each in a place of its caller. */
export function createRevisionWaits({ places, reached }: Pick<GatewayDeps, "places" | "reached">): Entrance["shown"] {
  const waits = createPlaces(places?.waits ?? usualLimits, "waits for a Holdfast-Revision");
  return async ({ readOnly }, { minRevision, principal }) => {
    if (minRevision === undefined || !readOnly) return;
    const leave = waits.take(principal);
    try {
      await reached(minRevision, revisionWaitMs);
    } finally {
      leave();
    }
  };
}
