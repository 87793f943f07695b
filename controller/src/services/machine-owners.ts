import type { DrainResult, OwnerKind } from "#fleet/owner/owner-kind.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { drillKind, type DrillObject } from "./backup/drill/drill.ts";
import { createServiceMonitoring, filesServiceKind } from "./monitored-services.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";

/** Owners of machines: services own the machines of their nodes, and restore drills their restore machines. */
export function createServiceOwners({
  services,
  drills,
}: {
  readonly services: Collection<ManagedServiceObject>;
  readonly drills: Pick<Collection<DrillObject>, "get">;
}): readonly OwnerKind[] {
  return [
    {
      kind: managedServiceKind.name,
      noun: "service",
      remedy: "Delete",
      describe(id) {
        const service = services.get(id)?.object;
        return service && { name: service.metadata.name, organizationId: service.metadata.organizationId };
      },
      isReplaceable: () => false,
      onHostLost: () => "retains",
      drain: (_, { hasOthers, mayStop }) => drainOfNode(hasOthers, mayStop),
      monitoring: createServiceMonitoring(services, "databases"),
    },
    {
      // Machines of files services are owned by their managed service; this kind has only their monitoring.
      kind: filesServiceKind,
      noun: "files service",
      remedy: "Delete",
      describe: () => undefined,
      isReplaceable: () => false,
      onHostLost: () => "retains",
      drain: (_, { hasOthers, mayStop }) => drainOfNode(hasOthers, mayStop),
      monitoring: createServiceMonitoring(services, "files"),
    },
    {
      kind: drillKind.name,
      noun: "restore drill",
      remedy: "Wait for",
      describe(id) {
        const drill = drills.get(id)?.object;
        if (drill === undefined) return undefined;
        const { organizationId } = drill.metadata;
        return { name: services.get(drill.spec.serviceId)?.object.metadata.name ?? id, organizationId };
      },
      // A drill's data are a copy of a backup. A drill fails with its machine, and reports the machine's reason.
      isReplaceable: () => true,
      onHostLost: () => "retains",
      drain: () => ({ outcome: "ends", reason: "It is a restore drill, which ends and deletes its machine." }),
    },
  ];
}

/** A drain moves a node of a service with several nodes, and stops a single node if the operator consents. */
function drainOfNode(hasOthers: boolean, mayStop: boolean): DrainResult {
  if (hasOthers) return { outcome: "moves", reason: "Another node replaces it, once a host of its zone has capacity." };
  if (mayStop) return { outcome: "stops", reason: "It is being stopped." };
  return { outcome: "blocks", reason: "It has its only node here. Drain with stop_single_nodes, or delete it." };
}
