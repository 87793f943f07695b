import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type HealthCheck,
  HealthCheckSchema,
  type HealthSchema,
  HealthStatus,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import type { InstanceObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type MonitoredOwner, type Monitoring, monitoringOf } from "#fleet/owner/monitored-owner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { type AppObject, appKind } from "../app/app.ts";
import { type HostedApp, isHosted } from "./hosted-app.ts";
import { appSoftware, appTerm } from "./hosting.ts";
import { noHealthyMachine } from "./hosting-plan.ts";

type Apps = Pick<Collection<AppObject>, "get" | "getCurrent" | "values" | "page" | "subscribe" | "ready">;

/** The last observation of a machine. */
type Observe = (machineId: string) => { readonly instance: Pick<InstanceObservation, "checks"> } | undefined;

/** Hosted apps as owners of metrics, logs and health, for alert rules and exports. */
export function createAppMonitoring(apps: Apps, observationOf: Observe): Monitoring {
  return monitoringOf<HostedApp>(hostedOf(apps), {
    noun: "app",
    readScope: "apps:read",
    pathSegment: "app-services",
    healthEvent: "app.health_changed",
    defaultRules: ["disk", "health"],
    owner: monitoredApp,
    health: (app) => {
      const since = timestampFromMs(app.status.hosting.since);
      const checks = checksOf(app, observationOf);
      const { status, reason } = healthWith(appHealth(app), checks);
      return { status: statuses[status], since, ...(reason !== "" && { reason }), checks };
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
  const { state, readyIds, unhealthySince, unhealthyReason, error } = status.hosting;
  const { replicas, power } = spec.hosting;
  if (power === "off") return { status: "unknown", reason: "The app is stopped." };
  if (state === "Error") return { status: "unhealthy", reason: error ?? "" };
  if (state !== "Running") return { status: "unknown", reason: "The app does not serve yet." };
  if (unhealthySince !== null || readyIds.length === 0)
    return { status: "unhealthy", reason: noHealthyMachine(unhealthyReason) };
  if (readyIds.length >= replicas) return { status: "healthy", reason: "" };
  return { status: "degraded", reason: `${readyIds.length} of ${replicas} machines serve.` };
}

/** The checks of the app's machines, as they last reported; none for a stopped app. */
function checksOf({ spec, status }: HostedApp, observationOf: Observe): HealthCheck[] {
  if (spec.hosting.power === "off") return [];
  return status.hosting.nodeIds.flatMap((nodeId) =>
    (observationOf(nodeId)?.instance.checks ?? []).map(({ name, status: level, since, reason }) =>
      create(HealthCheckSchema, {
        name,
        nodeId,
        status: statuses[level === "healthy" || level === "degraded" || level === "unhealthy" ? level : "unknown"],
        ...(since !== undefined && { since }),
        ...(reason !== "" && { reason }),
      }),
    ),
  );
}

/** A healthy app with a check that is not healthy is degraded, with the reason of the check. */
function healthWith(health: ReturnType<typeof appHealth>, checks: readonly HealthCheck[]): typeof health {
  const failing = checks.find(({ status }) => status !== HealthStatus.HEALTHY);
  if (health.status !== "healthy" || failing === undefined) return health;
  return { status: "degraded", reason: failing.reason ?? "" };
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
