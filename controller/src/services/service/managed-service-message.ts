import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { PendingUpdateSummarySchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import {
  type Health,
  HealthSchema,
  HealthStatus,
  type ManagedService,
  ManagedServiceSchema,
  ManagedServiceStatus,
  type Node,
  NodeRole,
  NodeSchema,
  NodeStatus,
  type QuorumSchema,
  type ReplicationSchema,
  type ServiceBackupsSchema,
  type TaskSummary,
  TaskSummarySchema,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { defaultWindow, windowMessage } from "../maintenance/maintenance-window.ts";
import type { OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { privateNameOf } from "#fleet/zone/dns-record.ts";
import type {
  ManagedServiceObject,
  NodeSpec,
  NodeStatus as StoredNodeStatus,
  ServiceHealth,
} from "./managed-service.ts";
import { autoscaleOf } from "../scaling/storage-autoscale.ts";
import { poolerMessage } from "./pooler.ts";
import { layoutModeOf } from "./layout-mode.ts";
import { serverCollationOf } from "./server-collation.ts";
import { privateListenerOf } from "./private-listener.ts";
import { replicationModeOf, syncStandbysOf } from "./member/primary-replicas/replication/sync-standbys.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import type { ServiceOrigin } from "./service-origin.ts";
import type { DeletedService } from "./deleted-services.ts";
import { standbysOf } from "./member/primary-replicas/primary.ts";
import { roleOf } from "./member/member-roles.ts";
import { isEstablished } from "./member/members.ts";

// biome-ignore format: a table, aligned so that it reads as one
export const serviceStatuses: Record<ManagedServiceState, ManagedServiceStatus> = {
  Pending:      ManagedServiceStatus.PENDING,
  Provisioning: ManagedServiceStatus.PROVISIONING,
  Running:      ManagedServiceStatus.RUNNING,
  Stopped:      ManagedServiceStatus.STOPPED,
  Error:        ManagedServiceStatus.ERROR,
  Upgrading:    ManagedServiceStatus.UPGRADING,
};

// biome-ignore format: a table, aligned so that it reads as one
const nodeStatuses: Record<StoredNodeStatus["status"], NodeStatus> = {
  Provisioning: NodeStatus.PROVISIONING,
  Running:      NodeStatus.RUNNING,
  Stopped:      NodeStatus.STOPPED,
  Error:        NodeStatus.ERROR,
  Unreachable:  NodeStatus.UNREACHABLE,
};

// biome-ignore format: a table, aligned so that it reads as one
const healthStatuses: Record<ServiceHealth["status"], HealthStatus> = {
  healthy:   HealthStatus.HEALTHY,
  degraded:  HealthStatus.DEGRADED,
  unhealthy: HealthStatus.UNHEALTHY,
  unknown:   HealthStatus.UNKNOWN,
};

/** One pending update of a service. */
export type PendingSummary = MessageInitShape<typeof PendingUpdateSummarySchema>;

/** Backups of a service that can be restored. */
export type BackupsSummary = MessageInitShape<typeof ServiceBackupsSchema>;

/** Message of a service. `operation`: the operation in progress, if any. */
export function managedServiceMessage(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
  pending: readonly PendingSummary[] = [],
  backups?: BackupsSummary,
): ManagedService {
  const { metadata, spec, status } = service;
  const pooler = poolerMessage(spec);
  const privateListener = privateListenerOf(spec);
  const layoutMode = layoutModeOf(spec);
  const serverCollation = serverCollationOf(spec);
  const { enabled, maxGb } = autoscaleOf(spec);
  return create(ManagedServiceSchema, {
    id: metadata.id,
    name: metadata.name,
    status: serviceStatuses[status.state],
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
    ...(status.primaryNodeId !== "" && { primaryNodeId: status.primaryNodeId }),
    term: BigInt(status.term),
    ...(pooler && { pooler }),
    ...(privateListener !== undefined && { privateListener }),
    ...(layoutMode !== undefined && { layoutMode }),
    ...(serverCollation !== undefined && { serverCollation }),
    storageAutoscale: { enabled, ...(maxGb !== null && { maxGb }) },
    ...(spec.nodes.length > 1 && groupMessage(service)),
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

/** The state of several nodes as a whole: their replication, or the quorum of nodes that elect their leader. */
function groupMessage(
  service: ManagedServiceObject,
): Pick<MessageInitShape<typeof ManagedServiceSchema>, "replication" | "quorum"> {
  return topologyOf(service.spec.databaseType) === "peers"
    ? { quorum: quorumMessage(service) }
    : { replication: replicationMessage(service) };
}

/** Nodes that still join have no vote. */
function quorumMessage({ spec, status }: ManagedServiceObject): MessageInitShape<typeof QuorumSchema> {
  const members = spec.nodes.filter(isEstablished).length;
  // The check of the whole cluster is that of the first node.
  const checks = status.health.checks.filter(({ name }) => name === "quorum");
  const check = checks.find(({ nodeId }) => nodeId === spec.nodes[0]?.id) ?? checks[0];
  // Degraded: there is a majority, and restarts wait.
  const healthy = check?.status === "healthy" || check?.status === "degraded";
  return { healthy, members, majority: Math.floor(members / 2) + 1 };
}

/** Replicas that still copy their data are not counted. */
function replicationMessage(service: ManagedServiceObject): MessageInitShape<typeof ReplicationSchema> {
  const standbys = standbysOf(service);
  const { checks } = service.status.health;
  const isHealthy = ({ id }: NodeSpec) =>
    checks.some(({ name, nodeId, status }) => nodeId === id && name === "replication" && status === "healthy");
  const mode = replicationModeOf(service.spec);
  const named = mode === "async" ? standbys : syncStandbysOf(service);
  const healthy = standbys.every(isHealthy) && (mode === "async" || named.length > 0);
  return { mode, healthy, standbyNames: named.map(({ hostname }) => hostname) };
}

function originMessage({ kind, serviceId, backupId, targetTime, restoresTo }: ServiceOrigin) {
  const moment = targetTime ?? restoresTo;
  return {
    kind,
    serviceId,
    backupId,
    ...(targetTime !== null && { restorePoint: timestampFromMs(targetTime) }),
    ...(moment !== undefined && { restoresTo: timestampFromMs(moment) }),
  };
}

/** Message of a deleted service that can be undeleted. */
export function deletedServiceMessage({ service, at, until }: DeletedService): ManagedService {
  const stopped = { ...service, status: { ...service.status, state: "Stopped" as const, error: null } };
  return create(ManagedServiceSchema, {
    ...managedServiceMessage(stopped, undefined),
    deletedAt: timestampFromMs(at),
    undeleteUntil: timestampFromMs(until),
  });
}

/** Message of a service's health. */
export function healthMessage(health: ServiceHealth): Health {
  return create(HealthSchema, {
    status: healthStatuses[health.status],
    since: timestampFromMs(health.since),
    checks: health.checks.map(({ name, nodeId, status, since, reason }) => ({
      name,
      nodeId,
      status: healthStatuses[status],
      since: timestampFromMs(since),
      ...(reason === "" ? {} : { reason }),
    })),
    ...(health.reason === "" ? {} : { reason: health.reason }),
  });
}

/** Message of a node. */
export function nodeMessage(service: ManagedServiceObject, node: NodeSpec, operation?: OperationObject): Node {
  const status = service.status.nodes.find(({ id }) => id === node.id)?.status ?? "Provisioning";
  return create(NodeSchema, {
    id: node.id,
    role: nodeRoleOf(service, node),
    status: nodeStatuses[status],
    hostname: node.hostname,
    zone: node.zone,
    privateHostname: privateNameOf(node.hostname),
    ...((node.joining ?? node.leaving) && operation && { operationId: operation.metadata.id }),
  });
}

const nodeRoles = { primary: NodeRole.PRIMARY, replica: NodeRole.REPLICA } as const;

/** Role of a node in messages. */
export function nodeRoleOf(service: ManagedServiceObject, node: NodeSpec): NodeRole {
  return nodeRoles[roleOf(service, node)];
}

/** Summary of the operation in progress; 100 percent and no task without one. */
export function taskSummaryOf(service: ManagedServiceObject, operation: OperationObject | undefined): TaskSummary {
  const status = serviceStatuses[service.status.state];
  if (operation === undefined) return create(TaskSummarySchema, { status, progressPct: 100 });
  const { step, progressPct } = operation.status;
  const operationId = operation.metadata.id;
  return create(TaskSummarySchema, {
    status,
    progressPct,
    operationId,
    ...(step === null ? {} : { currentTask: step }),
  });
}
