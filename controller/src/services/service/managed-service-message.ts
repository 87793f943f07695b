import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { PendingUpdateSummarySchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import {
  type Health,
  HealthSchema,
  HealthStatus,
  type ManagedService,
  ManagedServiceSchema,
  ManagedServiceStatus,
  type ServiceBackupsSchema,
  type Node,
  NodeRole,
  NodeSchema,
  NodeStatus,
  type ReplicationSchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { defaultWindow } from "./maintenance-window.ts";
import type { OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { privateNameOf } from "#fleet/zone/private-name.ts";
import type {
  ManagedServiceObject,
  NodeSpec,
  NodeStatus as StoredNodeStatus,
  ServiceHealth,
} from "./managed-service.ts";
import { autoscaleOf } from "../scaling/storage-autoscale.ts";
import { poolerOf } from "./pooler.ts";
import { isPrimary, standbysOf } from "./member/members.ts";
import { modeOf, syncStandbysOf } from "./member/sync-standbys.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import type { ServiceOrigin } from "./service-origin.ts";
import type { DeletedService } from "./deleted-services.ts";
import { windowMessage } from "./window-message.ts";

// biome-ignore format: a table, aligned so that it reads as one
export const shownStates: Record<ManagedServiceState, ManagedServiceStatus> = {
  Pending:      ManagedServiceStatus.PENDING,
  Provisioning: ManagedServiceStatus.PROVISIONING,
  Running:      ManagedServiceStatus.RUNNING,
  Stopped:      ManagedServiceStatus.STOPPED,
  Error:        ManagedServiceStatus.ERROR,
  Upgrading:    ManagedServiceStatus.UPGRADING,
};

// biome-ignore format: a table, aligned so that it reads as one
const shownNodes: Record<StoredNodeStatus["status"], NodeStatus> = {
  Provisioning: NodeStatus.PROVISIONING,
  Running:      NodeStatus.RUNNING,
  Stopped:      NodeStatus.STOPPED,
  Error:        NodeStatus.ERROR,
  Unreachable:  NodeStatus.UNREACHABLE,
};

// biome-ignore format: a table, aligned so that it reads as one
const shownHealth: Record<ServiceHealth["status"], HealthStatus> = {
  healthy:   HealthStatus.HEALTHY,
  degraded:  HealthStatus.DEGRADED,
  unhealthy: HealthStatus.UNHEALTHY,
  unknown:   HealthStatus.UNKNOWN,
};

/** One thing that waits to be done to a service, as it is shown beside it. */
export type PendingSummary = MessageInitShape<typeof PendingUpdateSummarySchema>;

/** What can be restored of a service, as it is shown beside it. */
export type BackupsSummary = MessageInitShape<typeof ServiceBackupsSchema>;

/** The service as users see it. `operation` is the one in progress, if any. */
export function managedServiceMessage(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
  pending: readonly PendingSummary[] = [],
  backups?: BackupsSummary,
): ManagedService {
  const { metadata, spec, status } = service;
  const pooler = poolerOf(spec);
  const { enabled, maxGb } = autoscaleOf(spec);
  return create(ManagedServiceSchema, {
    id: metadata.id,
    name: metadata.name,
    status: shownStates[status.state],
    databaseType: spec.databaseType,
    version: spec.version,
    planName: spec.planName,
    storageSizeGb: spec.storageSizeGb,
    storageTier: spec.storageTier,
    zone: spec.zone,
    allowedCidrs: [...spec.allowedCidrs],
    hostname: spec.hostname,
    privateHostname: privateNameOf(spec.hostname),
    port: spec.port,
    nodes: spec.nodes.map((node) => nodeMessage(service, node)),
    health: healthMessage(status.health),
    tags: { ...spec.tags },
    deletionProtection: spec.deletionProtection,
    maintenanceWindow: windowMessage(spec.maintenanceWindow ?? defaultWindow(metadata.id)),
    pendingUpdates: [...pending],
    primaryNodeId: status.primaryNodeId,
    term: BigInt(status.term),
    ...(pooler && { pooler }),
    storageAutoscale: { enabled, ...(maxGb !== null && { maxGb }) },
    ...(spec.nodes.length > 1 && { replication: replicationMessage(service) }),
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(operation === undefined ? {} : { operation: operationMessage(operation) }),
    ...(spec.ttlHours === null ? {} : { ttlHours: spec.ttlHours }),
    ...(spec.expiresAt === null ? {} : { expiresAt: timestampFromMs(spec.expiresAt) }),
    ...(status.error === null ? {} : { error: status.error }),
    ...(backups && { backups }),
    ...(metadata.managedBy && { managedBy: { kind: metadata.managedBy.kind, id: metadata.managedBy.id } }),
    ...(spec.origin && { restoredFrom: originMessage(spec.origin) }),
  });
}

/** Replicas that get their data count once they have them. */
function replicationMessage(service: ManagedServiceObject): MessageInitShape<typeof ReplicationSchema> {
  const standbys = standbysOf(service);
  const { checks } = service.status.health;
  const isWell = ({ id }: NodeSpec) =>
    checks.some(({ name, nodeId, status }) => nodeId === id && name === "replication" && status === "healthy");
  const mode = modeOf(service.spec);
  const named = mode === "async" ? standbys : syncStandbysOf(service);
  const healthy = standbys.every(isWell) && (mode === "async" || named.length > 0);
  return { mode, healthy, standbyNames: named.map(({ hostname }) => hostname) };
}

function originMessage({ kind, serviceId, backupId, targetTime }: ServiceOrigin) {
  return {
    kind,
    serviceId,
    backupId,
    ...(targetTime !== null && { restorePoint: timestampFromMs(targetTime) }),
  };
}

/** A service that is gone and can come back, as users see it. */
export function deletedServiceMessage({ service, at, until }: DeletedService): ManagedService {
  const stopped = { ...service, status: { ...service.status, state: "Stopped" as const, error: null } };
  return create(ManagedServiceSchema, {
    ...managedServiceMessage(stopped, undefined),
    deletedAt: timestampFromMs(at),
    undeleteUntil: timestampFromMs(until),
  });
}

/** Health as the API tells it. */
export function healthMessage(health: ServiceHealth): Health {
  return create(HealthSchema, {
    status: shownHealth[health.status],
    since: timestampFromMs(health.since),
    checks: health.checks.map(({ name, nodeId, status, since, reason }) => ({
      name,
      nodeId,
      status: shownHealth[status],
      since: timestampFromMs(since),
      ...(reason === "" ? {} : { reason }),
    })),
    ...(health.reason === "" ? {} : { reason: health.reason }),
  });
}

/** A node as the API tells it. */
export function nodeMessage(service: ManagedServiceObject, node: NodeSpec, operation?: OperationObject): Node {
  const status = service.status.nodes.find(({ id }) => id === node.id)?.status ?? "Provisioning";
  return create(NodeSchema, {
    id: node.id,
    role: roleOf(service, node),
    status: shownNodes[status],
    hostname: node.hostname,
    zone: node.zone,
    privateHostname: privateNameOf(node.hostname),
    ...((node.joining ?? node.leaving) && operation && { operationId: operation.metadata.id }),
  });
}

export function roleOf(service: ManagedServiceObject, node: NodeSpec): NodeRole {
  return isPrimary(service, node) ? NodeRole.PRIMARY : NodeRole.REPLICA;
}
