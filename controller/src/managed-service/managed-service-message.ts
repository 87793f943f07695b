import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { PendingUpdateSummarySchema } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import {
  HealthStatus,
  type ManagedService,
  ManagedServiceSchema,
  ManagedServiceStatus,
  type Node,
  NodeRole,
  NodeSchema,
  NodeStatus,
} from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { defaultWindow } from "./maintenance-window.ts";
import type { OperationObject } from "../operation/operation.ts";
import { operationMessage } from "../operation/operation-message.ts";
import { privateNameOf } from "../zone/private-name.ts";
import type {
  ManagedServiceObject,
  NodeSpec,
  NodeStatus as StoredNodeStatus,
  ServiceHealth,
} from "./managed-service.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
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

/** The service as users see it. `operation` is the one in progress, if any. */
export function managedServiceMessage(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
  pending: readonly PendingSummary[] = [],
): ManagedService {
  const { metadata, spec, status } = service;
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
    health: {
      status: shownHealth[status.health.status],
      since: timestampFromMs(status.health.since),
      checks: status.health.checks.map(({ name, nodeId, status: level, since, reason }) => ({
        name,
        nodeId,
        status: shownHealth[level],
        since: timestampFromMs(since),
        ...(reason === "" ? {} : { reason }),
      })),
      ...(status.health.reason === "" ? {} : { reason: status.health.reason }),
    },
    tags: { ...spec.tags },
    deletionProtection: spec.deletionProtection,
    maintenanceWindow: windowMessage(spec.maintenanceWindow ?? defaultWindow(metadata.id)),
    pendingUpdates: [...pending],
    createdAt: timestampFromMs(metadata.createdAt),
    updatedAt: timestampFromMs(metadata.updatedAt),
    ...(operation === undefined ? {} : { operation: operationMessage(operation) }),
    ...(spec.ttlHours === null ? {} : { ttlHours: spec.ttlHours }),
    ...(spec.expiresAt === null ? {} : { expiresAt: timestampFromMs(spec.expiresAt) }),
    ...(status.error === null ? {} : { error: status.error }),
  });
}

/** A node as the API tells it. */
export function nodeMessage(service: ManagedServiceObject, node: NodeSpec): Node {
  const status = service.status.nodes.find(({ id }) => id === node.id)?.status ?? "Provisioning";
  return create(NodeSchema, {
    id: node.id,
    role: roleOf(node),
    status: shownNodes[status],
    hostname: node.hostname,
    zone: node.zone,
    privateHostname: privateNameOf(node.hostname),
  });
}

export function roleOf(node: NodeSpec): NodeRole {
  return node.role === "primary" ? NodeRole.PRIMARY : NodeRole.REPLICA;
}
