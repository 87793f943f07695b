import type { PrimaryLeaseRules } from "#fleet/session/primary-leases.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { ManagedServiceObject } from "../../managed-service.ts";
import { namedPrimary } from "./primary.ts";

/** Rules that grant a lease only to the primary that the newest term names. No node gets a lease while it changes. */
export function createPrimaryLeaseRules(
  services: Pick<Collection<ManagedServiceObject>, "get" | "untilRevision">,
): PrimaryLeaseRules {
  return {
    refusal(machineId, serviceId, term) {
      const service = services.get(serviceId)?.object;
      if (service === undefined) return "there is no such service";
      if (namedPrimary(service) !== machineId) return "another node is the primary, or none is";
      return service.status.term === term ? undefined : `the term is ${service.status.term}, not ${term}`;
    },
    untilRevision: (revision, timeoutMs) => services.untilRevision(revision, timeoutMs),
  };
}
