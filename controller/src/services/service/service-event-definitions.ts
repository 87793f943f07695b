import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { ServiceEventType } from "./service-events.ts";

const serviceData = {
  service_id: { type: "uuid", meaning: "the service" },
  service_name: { type: "string", meaning: "name of the service" },
  database_type: { type: "string", meaning: "engine of the service" },
  status: { type: "string", meaning: "status of the service at the event" },
  error_message: { type: "string", meaning: "error of the service, while it has one", optional: true },
} as const satisfies EventDefinition["data"];

const serviceExample = {
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  service_name: "orders",
  database_type: "postgresql",
};

const running = { ...serviceExample, status: "Running" };

const nodeData = {
  node_id: { type: "uuid", meaning: "the node" },
  role: { type: "string", meaning: "`replica`" },
  hostname: { type: "string", meaning: "hostname of the node" },
  zone: { type: "string", meaning: "zone of the node" },
} as const satisfies EventDefinition["data"];

const replica = {
  node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
  role: "replica",
  hostname: "orders-k3v9q2zt-2.local.holdfast.test",
  zone: "local",
};

const maintenanceData = {
  ...serviceData,
  operation_id: { type: "uuid", meaning: "the operation that applies them" },
  update_ids: { type: "string[]", meaning: "the updates" },
  automatic: { type: "boolean", meaning: "true: started by the platform, in the window or at the end of a notice" },
} as const satisfies EventDefinition["data"];

const maintenanceExample = {
  operation_id: "0198f2a4-6f9a-7b02-9c1d-5e2f7a8b4c60",
  update_ids: ["trixie-3f2a9c0d51e78b64"],
  automatic: true,
};

/** Events of services and their nodes. */
export const serviceEventDefinitions = {
  "service.running": { when: "a service is ready to use", data: serviceData, example: running },
  "service.error": {
    when: "a service enters an error state",
    data: serviceData,
    example: { ...serviceExample, status: "Error", error_message: "The engine did not start in time." },
  },
  "service.stopped": {
    when: "a service has stopped",
    data: serviceData,
    example: { ...serviceExample, status: "Stopped" },
  },
  "service.deleted": {
    when: "a service and its machines are deleted",
    data: serviceData,
    example: { ...serviceExample, status: "Deleting" },
  },
  "service.expiring": {
    when: "a service's time to live ends soon",
    data: {
      ...serviceData,
      expires_at: { type: "time", meaning: "time at which the service will be deleted" },
      hours_left: { type: "number", meaning: "hours until the deletion" },
    },
    example: { ...running, expires_at: "2026-11-22T10:00:00.000Z", hours_left: 24 },
  },
  "service.expiry_held": {
    when: "a service's time to live has ended, and its deletion is blocked",
    data: { ...serviceData, reason: { type: "string", meaning: "`deletion_protection`" } },
    example: { ...running, reason: "deletion_protection" },
  },
  "service.restored": {
    when: "a service is restored from a backup and ready to use",
    data: {
      ...serviceData,
      kind: { type: "string", meaning: "`restore`, `fork` or `undelete`" },
      source_service_id: { type: "uuid", meaning: "service that the backup is of" },
      backup_id: { type: "uuid", meaning: "the backup" },
      restore_point: { type: "time", meaning: "requested time, if any", optional: true },
    },
    example: {
      ...running,
      kind: "restore",
      source_service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f11",
      backup_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
      restore_point: "2026-11-22T10:00:00.000Z",
    },
  },
  "service.failover_started": {
    when: "a failover starts, usually because the primary does not respond",
    data: {
      ...serviceData,
      from_node_id: { type: "uuid", meaning: "old primary" },
      reason: {
        type: "string",
        meaning:
          "`node_silent`, `engine_silent` if only the agent responds, or `forced` by an operator of the platform",
      },
    },
    example: { ...running, from_node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42", reason: "node_silent" },
  },
  "service.failed_over": {
    when: "another node is the primary of a service and has taken a write",
    data: {
      ...serviceData,
      from_node_id: { type: "uuid", meaning: "old primary" },
      to_node_id: { type: "uuid", meaning: "new primary" },
      term: { type: "number", meaning: "number of the term, raised with each named primary" },
      seconds: {
        type: "number",
        meaning: "seconds from the start of the change to the first write of the new primary",
      },
    },
    example: {
      ...running,
      from_node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
      to_node_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f11",
      term: 2,
      seconds: 0.6,
    },
  },
  "node.added": {
    when: "a replica has its data and receives what the primary writes",
    data: { ...serviceData, ...nodeData },
    example: { ...running, ...replica },
  },
  "node.removed": {
    when: "a removed replica and its machine are deleted",
    data: { ...serviceData, ...nodeData },
    example: { ...running, ...replica },
  },
  "node.unhealthy": {
    when: "a node of a service with several is in Error, unreachable or unhealthy for 10 s; emitted once, and again only after the node was healthy; planned work on the node explains it for 5 minutes",
    data: { ...serviceData, ...nodeData, reason: { type: "string", meaning: "reason of its first failing check" } },
    example: { ...running, ...replica, reason: "The replica is not connected to its primary." },
  },
  "node.rewound": {
    when: "an old primary follows the new one, after it discarded the log that only it had",
    data: {
      ...serviceData,
      ...nodeData,
      discarded_from: { type: "string", meaning: "position in its log after which no other node had the log" },
      discarded_bytes: { type: "number", meaning: "bytes of log after that position" },
      kept_bytes: { type: "number", meaning: "number of these bytes, from the first, that its machine retains" },
    },
    example: { ...running, ...replica, discarded_from: "0/5000148", discarded_bytes: 8_312, kept_bytes: 8_312 },
  },
  "service.replication_degraded": {
    when: "replicas are not connected to the primary for 10 s; emitted once, and again only after all were connected; planned work on all of them explains it for 5 minutes",
    data: {
      ...serviceData,
      missing: { type: "string[]", meaning: "host names of the replicas that are not connected" },
    },
    example: { ...running, missing: ["orders-k3v9q2zt-2.local.holdfast.test"] },
  },
  "service.slot_lost": {
    when: "PostgreSQL invalidates a logical slot, or a new primary lacks one of the old: its consumer must start again",
    data: {
      ...serviceData,
      slot: { type: "string", meaning: "name of the slot" },
      database: { type: "string", meaning: "database of the slot" },
      plugin: { type: "string", meaning: "output plugin of the slot" },
      reason: {
        type: "string",
        meaning:
          "`not_copied`: a new primary lacks it; otherwise the engine's `invalidation_reason`, such as `wal_removed`",
      },
      from_node_id: { type: "uuid", meaning: "node that has the slot" },
      to_node_id: { type: "uuid", meaning: "primary: the same node, unless the slot was not copied" },
    },
    example: {
      ...running,
      slot: "changes",
      database: "app",
      plugin: "pgoutput",
      reason: "not_copied",
      from_node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
      to_node_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f11",
    },
  },
  "service.storage_low": {
    when: "a service's disk is 80, 85 or 90% full",
    data: {
      ...serviceData,
      used_pct: { type: "number", meaning: "80, 85 or 90: highest threshold reached" },
      storage_size_gb: { type: "number", meaning: "storage of the service" },
      node_id: { type: "uuid", meaning: "node of the disk" },
    },
    example: { ...running, used_pct: 85, storage_size_gb: 10, node_id: replica.node_id },
  },
  "service.writes_blocked": {
    when: "a service's disk is 95% full, and writes are blocked until space is free",
    data: {
      ...serviceData,
      used_pct: { type: "number", meaning: "95, or 99: no client is admitted" },
      storage_size_gb: { type: "number", meaning: "storage of the service" },
      node_id: { type: "uuid", meaning: "node of the disk" },
    },
    example: { ...running, used_pct: 95, storage_size_gb: 10, node_id: replica.node_id },
  },
  "service.autoscale_failed": {
    when: "the quota or the host prevents automatic growth of a service's storage; retried every 10 minutes",
    data: {
      ...serviceData,
      storage_size_gb: { type: "number", meaning: "storage of the service" },
      wanted_size_gb: { type: "number", meaning: "size that was attempted" },
      reason: { type: "string", meaning: "reason, and advice" },
    },
    example: {
      ...running,
      storage_size_gb: 10,
      wanted_size_gb: 13,
      reason: "The organization has used its 100 GB of storage.",
    },
  },
  "service.resized": {
    when: "a service has the requested plan or storage",
    data: {
      ...serviceData,
      operation_id: { type: "uuid", meaning: "operation that resized it" },
      plan_name: { type: "string", meaning: "new plan" },
      storage_size_gb: { type: "number", meaning: "new storage" },
      from_plan_name: { type: "string", meaning: "old plan" },
      from_storage_size_gb: { type: "number", meaning: "old storage" },
    },
    example: {
      ...running,
      operation_id: "0198f2a4-6f9a-7b02-9c1d-5e2f7a8b4c61",
      plan_name: "tier-2",
      storage_size_gb: 20,
      from_plan_name: "tier-1",
      from_storage_size_gb: 10,
    },
  },
  "service.health_changed": {
    when: "a service's health has had a new status for 10 s; planned work on a node explains degraded and unknown for 5 minutes",
    data: {
      ...serviceData,
      from: { type: "string", meaning: "`healthy`, `degraded`, `unhealthy` or `unknown`: the status before" },
      to: { type: "string", meaning: "the new status" },
      reason: { type: "string", meaning: "reason; empty if healthy" },
      checks: { type: "object[]", meaning: "all checks: `name`, `node_id`, `status`, `reason`" },
    },
    example: {
      ...running,
      from: "healthy",
      to: "degraded",
      reason: "Over 90% of the 95 connections are taken.",
      checks: [
        {
          name: "connections",
          node_id: "0198f2a4-6f21-7a03-8d44-9c1e5b7a2f60",
          status: "degraded",
          reason: "Over 90% of the 95 connections are taken.",
        },
      ],
    },
    optIn: true,
  },
  "service.recovery_point_stale": {
    when: "the newest recovery point of a running service is 15 minutes old; emitted once, and again only after it was recent",
    data: { ...serviceData, newest_point: { type: "time", meaning: "newest time that can be restored" } },
    example: { ...running, newest_point: "2026-11-22T10:00:00.000Z" },
  },
  "service.maintenance_scheduled": {
    when: "the time of an update is set or changed: a day ahead, or immediately for an urgent update",
    data: {
      ...serviceData,
      update_id: { type: "string", meaning: "the update" },
      kind: { type: "string", meaning: "`engine_minor`, `image`, `guest_kernel`, `keeper` or `restart`" },
      title: { type: "string", meaning: "description of the update" },
      urgent: { type: "boolean", meaning: "true: it is applied outside the window if its notice ends" },
      apply_at: { type: "time", meaning: "time at which it starts unless it is applied earlier" },
    },
    example: {
      ...running,
      update_id: "trixie-3f2a9c0d51e78b64",
      kind: "engine_minor",
      title: "postgresql 17.10 to 17.11",
      urgent: false,
      apply_at: "2026-11-22T03:17:00.000Z",
    },
  },
  "service.maintenance_started": {
    when: "the platform starts to apply updates of a service",
    data: maintenanceData,
    example: { ...running, ...maintenanceExample },
  },
  "service.maintenance_completed": {
    when: "updates of a service were applied",
    data: maintenanceData,
    example: { ...running, ...maintenanceExample },
  },
  "service.maintenance_failed": {
    when: "updates of a service could not be applied",
    data: {
      ...maintenanceData,
      error_message: { type: "string", meaning: "error of the operation" },
      rolled_back: { type: "boolean", meaning: "true: the service runs as before; false: it is in Error" },
      data_restored: {
        type: "boolean",
        meaning: "true: the data were restored from the snapshot before the update; false: they are unchanged",
      },
    },
    example: {
      ...running,
      ...maintenanceExample,
      error_message: "The engine did not start. The service runs from 17.10 again, with all its data.",
      rolled_back: true,
      data_restored: false,
    },
  },
} as const satisfies Readonly<Record<ServiceEventType, EventDefinition>>;
