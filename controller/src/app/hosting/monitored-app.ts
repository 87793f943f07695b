import { type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type HealthSchema, HealthStatus } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { type MonitoredOwner, type Monitoring, monitoringOf } from "#fleet/owner/monitored-owner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { type HostedApp, isHosted } from "./hosted-app.ts";
import { appSoftware, appTerm } from "./hosting.ts";

type Apps = Pick<Collection<AppObject>, "get" | "getCurrent" | "values" | "page" | "subscribe" | "ready">;

/** Hosted apps as owners of metrics, logs and health, for alert rules and exports. */
export function createAppMonitoring(apps: Apps): Monitoring {
  return monitoringOf<HostedApp>(hostedOf(apps), {
    noun: "app",
    readScope: "apps:read",
    pathSegment: "app-services",
    healthEvent: "app.health_changed",
    defaultRules: ["disk", "health"],
    owner: monitoredApp,
    health: (app) => {
      const { status, reason } = appHealth(app);
      const since = timestampFromMs(app.status.hosting.since);
      return { status: statuses[status], since, ...(reason !== "" && { reason }) };
    },
  });
}

export type HealthName = "healthy" | "degraded" | "unhealthy" | "unknown";

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<HealthName, NonNullable<MessageInitShape<typeof HealthSchema>["status"]>> = {
  healthy:   HealthStatus.HEALTHY,
  degraded:  HealthStatus.DEGRADED,
  unhealthy: HealthStatus.UNHEALTHY,
  unknown:   HealthStatus.UNKNOWN,
};

/** Health of an app: whether clients reach it, and on all of its machines. The reason is empty for a healthy one. */
export function appHealth({ spec, status }: HostedApp): { readonly status: HealthName; readonly reason: string } {
  const { state, readyIds, unhealthySince, error } = status.hosting;
  const { replicas, power } = spec.hosting;
  if (power === "off") return { status: "unknown", reason: "The app is stopped." };
  if (state === "Error") return { status: "unhealthy", reason: error ?? "" };
  if (state !== "Running") return { status: "unknown", reason: "The app does not serve yet." };
  if (unhealthySince !== null || readyIds.length === 0)
    return { status: "unhealthy", reason: "No machine of the app is healthy." };
  if (readyIds.length >= replicas) return { status: "healthy", reason: "" };
  return { status: "degraded", reason: `${readyIds.length} of ${replicas} machines serve.` };
}

function monitoredApp({ metadata, spec, status }: HostedApp): MonitoredOwner {
  const { nodeIds, readyIds, delivery } = status.hosting;
  const isOff = spec.hosting.power === "off";
  return {
    owner: { kind: appKind.name, id: metadata.id },
    noun: "app",
    name: metadata.name,
    organizationId: metadata.organizationId,
    software: appSoftware.name,
    machines: nodeIds.map((id) => ({ id, role: "primary", isExpected: !isOff && readyIds.includes(id) })),
    mainMachineId: readyIds[0] ?? nodeIds[0],
    suspension: metadata.deletionRequestedAt === undefined ? (isOff ? "stopped" : undefined) : "deleted",
    startedAt: 0,
    generation: delivery?.generation ?? 0,
    term: appTerm,
  };
}

/** The apps that the platform hosts. */
function hostedOf(apps: Apps) {
  const only = (stored: Stored<AppObject> | undefined): Stored<HostedApp> | undefined =>
    stored !== undefined && isHosted(stored.object) ? { ...stored, object: stored.object } : undefined;
  return {
    get: (id: string) => only(apps.get(id)),
    getCurrent: async (id: string, signal?: AbortSignal) => only(await apps.getCurrent(id, signal)),
    *ids() {
      for (const { object } of apps.values()) if (isHosted(object)) yield object.metadata.id;
    },
    page: ((filter, page, bounds) => {
      const { items, next } = apps.page((app) => isHosted(app) && filter(app), page, bounds);
      return { items: items.flatMap((item) => only(item) ?? []), next };
    }) satisfies Collection<HostedApp>["page"],
    subscribe: ((onChange) =>
      apps.subscribe((id, before) => {
        const app = apps.get(id)?.object ?? before;
        if (app !== undefined && isHosted(app))
          onChange(id, before !== undefined && isHosted(before) ? before : undefined);
      })) satisfies Collection<HostedApp>["subscribe"],
    ready: apps.ready,
  };
}
