import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { silentReason, startingReason } from "./health/managed-service-health.ts";
import { isRequiredForService } from "./member/member-roles.ts";

/**
 * Services with outdated health replaced by `unknown`: the agent is disconnected, or has not reported since its
 * machine's start. After a restart of the platform the stored health is outdated until the next round of the
 * reconciler.
 */
export interface LiveServices {
  /**
   * The object itself if its health is current; otherwise a copy with health `unknown`, identical for equal reasons.
   */
  withCurrentHealth(service: ManagedServiceObject): ManagedServiceObject;
}

export function createLiveServices(fleet: Pick<Fleet, "session" | "observation">, now: () => number): LiveServices {
  const doubted = new WeakMap<ManagedServiceObject, Map<string, ManagedServiceObject>>();

  function outdatedReasonOf(service: ManagedServiceObject): string | undefined {
    const { spec, status } = service;
    if (status.health.status !== "healthy" || spec.power === "off") return undefined;
    for (const { id } of spec.nodes.filter((node) => isRequiredForService(service, node))) {
      const session = fleet.session(id);
      if (session === undefined) return silentReason;
      if (fleet.observation(id)?.bootId !== session.bootId) return startingReason;
    }
    return undefined;
  }

  return {
    withCurrentHealth(service) {
      const reason = outdatedReasonOf(service);
      if (reason === undefined) return service;
      const variants = doubted.get(service) ?? new Map<string, ManagedServiceObject>();
      doubted.set(service, variants);
      const before = variants.get(reason);
      if (before !== undefined) return before;
      const health = { ...service.status.health, status: "unknown" as const, reason, since: now() };
      const changed = { ...service, status: { ...service.status, health } };
      variants.set(reason, changed);
      return changed;
    },
  };
}
