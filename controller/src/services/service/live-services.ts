import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { silentReason, startingReason } from "./managed-service-health.ts";

/**
 * Services as far as they are known at this moment. What was found healthy at the last look is not said to be so while an
 * agent is away, or has not told of its engine since its machine was started: after a restart of the platform it takes
 * until the next look for the store to say so too.
 */
export interface LiveServices {
  /** The object itself when nothing is in doubt, else always the same changed one. */
  live(service: ManagedServiceObject): ManagedServiceObject;
}

export function createLiveServices(fleet: Pick<Fleet, "session" | "observation">, now: () => number): LiveServices {
  const doubted = new WeakMap<ManagedServiceObject, Map<string, ManagedServiceObject>>();

  function doubtOf({ spec, status }: ManagedServiceObject): string | undefined {
    if (status.health.status !== "healthy" || spec.power === "off") return undefined;
    for (const { id } of spec.nodes.filter((node) => node.id === status.primaryNodeId)) {
      const session = fleet.session(id);
      if (session === undefined) return silentReason;
      if (fleet.observation(id)?.bootId !== session.bootId) return startingReason;
    }
    return undefined;
  }

  return {
    live(service) {
      const reason = doubtOf(service);
      if (reason === undefined) return service;
      const known = doubted.get(service) ?? new Map<string, ManagedServiceObject>();
      doubted.set(service, known);
      const before = known.get(reason);
      if (before !== undefined) return before;
      const health = { ...service.status.health, status: "unknown" as const, reason, since: now() };
      const changed = { ...service, status: { ...service.status, health } };
      known.set(reason, changed);
      return changed;
    },
  };
}
