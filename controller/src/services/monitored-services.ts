import { type MonitoredOwner, type Monitoring, monitoringOf } from "#fleet/owner/monitored-owner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";
import { healthMessage } from "./service/managed-service-message.ts";
import { roleOf, taskTarget } from "./service/member/member-roles.ts";
import { isStaying } from "./service/member/members.ts";

/** Services as owners of metrics, logs and health, for alert rules and exports. */
export function createServiceMonitoring(
  services: Pick<Collection<ManagedServiceObject>, "get" | "getCurrent" | "ids" | "page" | "subscribe" | "ready">,
): Monitoring {
  return monitoringOf(services, {
    noun,
    healthEvent: "service.health_changed",
    defaultRules: ["disk", "health", "restorable_age_seconds", "replication_lag_seconds"],
    owner: monitoredService,
    health: ({ status }) => healthMessage(status.health),
  });
}

const noun = "service";
const cache = new WeakMap<ManagedServiceObject, MonitoredOwner>();

/**
 * The monitored owner of a service, cached while the service does not change: rules and exports read it each second.
 */
export function monitoredService(service: ManagedServiceObject): MonitoredOwner {
  const before = cache.get(service);
  if (before !== undefined) return before;
  const { metadata, spec, status } = service;
  const isServing = spec.power !== "off" && (status.state === "Running" || status.state === "Error");
  const owner: MonitoredOwner = {
    owner: { kind: managedServiceKind.name, id: metadata.id },
    noun,
    name: metadata.name,
    organizationId: metadata.organizationId,
    software: spec.databaseType,
    machines: spec.nodes.map((node) => ({
      id: node.id,
      role: roleOf(service, node),
      isExpected: isServing && isStaying(node),
    })),
    // Computed on demand, because a service may have no primary yet.
    get mainMachineId() {
      return taskTarget(service).id;
    },
    suspension: metadata.deletionRequestedAt === undefined ? (spec.power === "off" ? "stopped" : undefined) : "deleted",
    startedAt: spec.poweredOnAt ?? 0,
    generation: spec.instanceGeneration,
    term: status.term,
  };
  cache.set(service, owner);
  return owner;
}
