import { type MonitoredOwner, type Monitoring, monitoringOf } from "#fleet/owner/monitored-owner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { managedServiceKind, type ManagedServiceObject } from "./service/managed-service.ts";
import { healthMessage } from "./service/managed-service-message.ts";
import { roleOf, taskTarget } from "./service/member/member-roles.ts";
import { isEstablished } from "./service/member/members.ts";
import { plannedUntil } from "./service/member/planned-work.ts";
import { familyOf, type ServiceFamily } from "@holdfast/common/engine-catalog/engine-catalog.ts";

/** Kind of files services as monitored owners. */
export const filesServiceKind = "files-service";

/** Kind of owner of a service. */
export function ownerKindOf(service: ManagedServiceObject | undefined): string {
  return isOf(service, "files") ? filesServiceKind : managedServiceKind.name;
}

type Services = Pick<
  Collection<ManagedServiceObject>,
  "get" | "getCurrent" | "values" | "page" | "subscribe" | "ready"
>;

/** Services of one family as owners of metrics, logs and health, for alert rules and exports. */
export function createServiceMonitoring(services: Services, family: ServiceFamily): Monitoring {
  return monitoringOf(ofFamily(services, family), {
    noun: nouns[family],
    ...(family === "files" && {
      readScope: "files:read",
      resourceKind: managedServiceKind.name,
      pathSegment: "files-services",
    }),
    healthEvent: "service.health_changed",
    defaultRules: ["disk", "health", "restorable_age_seconds", "replication_lag_seconds"],
    owner: monitoredService,
    health: ({ status }) => healthMessage(status.health),
  });
}

const nouns = { databases: "service", files: "files service" } as const;

const isOf = (service: ManagedServiceObject | undefined, family: ServiceFamily): boolean =>
  service !== undefined && familyOf(service.spec.databaseType) === family;

/** The services of one family. */
function ofFamily(services: Services, family: ServiceFamily) {
  const only = (stored: Stored<ManagedServiceObject> | undefined) =>
    isOf(stored?.object, family) ? stored : undefined;
  return {
    get: (id: string) => only(services.get(id)),
    getCurrent: async (id: string, signal?: AbortSignal) => only(await services.getCurrent(id, signal)),
    *ids() {
      for (const { object } of services.values()) if (isOf(object, family)) yield object.metadata.id;
    },
    page: ((filter, page, bounds) =>
      services.page((service) => isOf(service, family) && filter(service), page, bounds)) satisfies Services["page"],
    subscribe: ((onChange) =>
      services.subscribe((id, before) => {
        if (isOf(services.get(id)?.object ?? before, family)) onChange(id, before);
      })) satisfies Services["subscribe"],
    ready: services.ready,
  };
}

const cache = new WeakMap<ManagedServiceObject, MonitoredOwner>();

/**
 * The monitored owner of a service, cached while the service does not change: rules and exports read it each second.
 */
export function monitoredService(service: ManagedServiceObject): MonitoredOwner {
  const before = cache.get(service);
  if (before !== undefined) return before;
  const { metadata, spec, status } = service;
  const isServing = spec.power !== "off" && (status.state === "Running" || status.state === "Error");
  const family = familyOf(spec.databaseType);
  const owner: MonitoredOwner = {
    owner: { kind: family === "files" ? filesServiceKind : managedServiceKind.name, id: metadata.id },
    noun: nouns[family],
    name: metadata.name,
    organizationId: metadata.organizationId,
    software: spec.databaseType,
    machines: spec.nodes.map((node) => ({
      id: node.id,
      role: roleOf(service, node),
      isExpected: isServing && isEstablished(node),
      plannedUntil: plannedUntil(service, node.id),
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
