import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, NodeSpec } from "./managed-service.ts";
import type { ManagedServiceEffect } from "./managed-service-lifecycle.ts";
import { roleOf } from "./member/member-roles.ts";

/** Event types of a service (spec 2, Events). */
export type ServiceEventType =
  | "service.running"
  | "service.error"
  | "service.stopped"
  | "service.deleted"
  | "service.expiring"
  | "service.expiry_held"
  | "service.restored"
  | "service.health_changed"
  | "service.failover_started"
  | "service.failed_over"
  | "node.added"
  | "node.removed"
  | "node.unhealthy"
  | "node.rewound"
  | "service.replication_degraded"
  | "service.slot_lost"
  | "service.resized"
  | "service.storage_low"
  | "service.writes_blocked"
  | "service.autoscale_failed"
  | "service.recovery_point_stale"
  | `service.maintenance_${"scheduled" | "started" | "completed" | "failed"}`;

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<ManagedServiceEffect, ServiceEventType | undefined> = {
  none:            undefined,
  announceRunning: "service.running",
  announceError:   "service.error",
  announceStopped: "service.stopped",
};

/** Event type that an effect of the life cycle emits. */
export function announcementOf(effect: ManagedServiceEffect): ServiceEventType | undefined {
  return announced[effect];
}

/** An event about a service in its current state, with additional data of its type. */
export function serviceEvent(
  type: ServiceEventType,
  service: ManagedServiceObject,
  more: Record<string, unknown> = {},
): NewEvent {
  const { metadata, spec, status } = service;
  const message = status.error === null ? {} : { error_message: status.error.message };
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: "managed-service",
    objectId: metadata.id,
    data: {
      service_id: metadata.id,
      service_name: metadata.name,
      database_type: spec.databaseType,
      status: status.state,
      ...message,
      ...more,
    },
  };
}

/** An event about one node of a service. */
export function nodeEvent(
  type: "node.added" | "node.removed" | "node.unhealthy" | "node.rewound",
  service: ManagedServiceObject,
  node: NodeSpec,
  more: Readonly<Record<string, unknown>> = {},
): NewEvent {
  const role = roleOf(service, node);
  const { id, hostname, zone } = node;
  return serviceEvent(type, service, { node_id: id, role, hostname, zone, ...more });
}
