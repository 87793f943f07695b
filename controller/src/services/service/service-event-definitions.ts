import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { ServiceEventType } from "./service-events.ts";

const serviceData = {
  service_id: { type: "uuid", meaning: "the service" },
  service_name: { type: "string", meaning: "its name then" },
  database_type: { type: "string", meaning: "its engine" },
  status: { type: "string", meaning: "its status then" },
  error_message: { type: "string", meaning: "what went wrong, while the service has an error", optional: true },
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
  hostname: { type: "string", meaning: "its name" },
  zone: { type: "string", meaning: "where it is" },
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
  automatic: { type: "boolean", meaning: "it began by itself, in the window or at the end of a notice" },
} as const satisfies EventDefinition["data"];

const maintenanceExample = {
  operation_id: "0198f2a4-6f9a-7b02-9c1d-5e2f7a8b4c60",
  update_ids: ["trixie-3f2a9c0d51e78b64"],
  automatic: true,
};

/** The events of services themselves. */
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
    when: "a service is gone with all that it had",
    data: serviceData,
    example: { ...serviceExample, status: "Deleting" },
  },
  "service.expiring": {
    when: "the end of a service's time to live comes near",
    data: {
      ...serviceData,
      expires_at: { type: "time", meaning: "when it will be deleted" },
      hours_left: { type: "number", meaning: "hours from the warning to the end" },
    },
    example: { ...running, expires_at: "2026-11-22T10:00:00.000Z", hours_left: 24 },
  },
  "service.expiry_held": {
    when: "a service's time is over and something keeps it from being deleted",
    data: { ...serviceData, reason: { type: "string", meaning: "`deletion_protection`" } },
    example: { ...running, reason: "deletion_protection" },
  },
  "service.restored": {
    when: "a service has the data of a backup and is ready to use",
    data: {
      ...serviceData,
      kind: { type: "string", meaning: "`restore`, `fork` or `undelete`" },
      source_service_id: { type: "uuid", meaning: "the service that the backup is of" },
      backup_id: { type: "uuid", meaning: "the backup" },
      restore_point: { type: "time", meaning: "the moment that was asked for, where one was", optional: true },
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
    when: "a service's primary is given up, mostly as it fell silent",
    data: {
      ...serviceData,
      from_node_id: { type: "uuid", meaning: "the primary that is given up" },
      reason: {
        type: "string",
        meaning:
          "`node_silent`, or `engine_silent` where its agent answers and its engine does not, or `forced` by an operator of the platform",
      },
    },
    example: { ...running, from_node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42", reason: "node_silent" },
  },
  "service.failed_over": {
    when: "another node has become a service's primary, and has taken a write",
    data: {
      ...serviceData,
      from_node_id: { type: "uuid", meaning: "the primary of before" },
      to_node_id: { type: "uuid", meaning: "the primary of now" },
      term: { type: "number", meaning: "counts the primaries of the service" },
      seconds: { type: "number", meaning: "from its beginning until the new primary took a write" },
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
    when: "nothing is left of a replica that was removed",
    data: { ...serviceData, ...nodeData },
    example: { ...running, ...replica },
  },
  "node.unhealthy": {
    when: "a node of a service with several has been in Error, out of reach or unhealthy for 10 s; told once until it is well",
    data: { ...serviceData, ...nodeData, reason: { type: "string", meaning: "what its first check that fails says" } },
    example: { ...running, ...replica, reason: "The replica is not connected to its primary." },
  },
  "node.rewound": {
    when: "a primary of before follows the one of now, without what only it had",
    data: {
      ...serviceData,
      ...nodeData,
      discarded_from: { type: "string", meaning: "position in its log behind which nobody else had it" },
      discarded_bytes: { type: "number", meaning: "bytes of log behind that" },
      kept_bytes: { type: "number", meaning: "how many of them, from the first on, its machine keeps" },
    },
    example: { ...running, ...replica, discarded_from: "0/5000148", discarded_bytes: 8_312, kept_bytes: 8_312 },
  },
  "service.replication_degraded": {
    when: "replicas have not been connected to the primary for 10 s; told once until all are",
    data: {
      ...serviceData,
      missing: { type: "string[]", meaning: "host names of the replicas that are not connected" },
    },
    example: { ...running, missing: ["orders-k3v9q2zt-2.local.holdfast.test"] },
  },
  "service.slot_lost": {
    when: "another node became the primary of a PostgreSQL, and lacks a logical slot of the one before: its consumer begins anew",
    data: {
      ...serviceData,
      slot: { type: "string", meaning: "the slot's name" },
      database: { type: "string", meaning: "the database that it is of" },
      plugin: { type: "string", meaning: "what it decodes by" },
      from_node_id: { type: "uuid", meaning: "the node that has it" },
      to_node_id: { type: "uuid", meaning: "the primary now" },
    },
    example: {
      ...running,
      slot: "changes",
      database: "app",
      plugin: "pgoutput",
      from_node_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
      to_node_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f11",
    },
  },
  "service.storage_low": {
    when: "a service's disk is 80, 85 or 90% full",
    data: {
      ...serviceData,
      used_pct: { type: "number", meaning: "80, 85 or 90: the last that was reached" },
      storage_size_gb: { type: "number", meaning: "its storage" },
      node_id: { type: "uuid", meaning: "the node whose disk it is" },
    },
    example: { ...running, used_pct: 85, storage_size_gb: 10, node_id: replica.node_id },
  },
  "service.writes_blocked": {
    when: "a service's disk is 95% full, and writes are refused until there is room",
    data: {
      ...serviceData,
      used_pct: { type: "number", meaning: "95, or 99: nobody is admitted" },
      storage_size_gb: { type: "number", meaning: "its storage" },
      node_id: { type: "uuid", meaning: "the node whose disk it is" },
    },
    example: { ...running, used_pct: 95, storage_size_gb: 10, node_id: replica.node_id },
  },
  "service.autoscale_failed": {
    when: "a service's storage was to grow by itself, and its quota or its host did not let it; tried again every 10 minutes",
    data: {
      ...serviceData,
      storage_size_gb: { type: "number", meaning: "its storage" },
      wanted_size_gb: { type: "number", meaning: "what it was to have" },
      reason: { type: "string", meaning: "why not, and what helps" },
    },
    example: {
      ...running,
      storage_size_gb: 10,
      wanted_size_gb: 13,
      reason: "The organization has used its 100 GB of storage.",
    },
  },
  "service.resized": {
    when: "a service has the plan, or the storage, that was asked for",
    data: {
      ...serviceData,
      operation_id: { type: "uuid", meaning: "the operation that brought it" },
      plan_name: { type: "string", meaning: "its plan now" },
      storage_size_gb: { type: "number", meaning: "its storage now" },
      from_plan_name: { type: "string", meaning: "its plan before" },
      from_storage_size_gb: { type: "number", meaning: "its storage before" },
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
    when: "another status of a service's health has held for 10 s",
    data: {
      ...serviceData,
      from: { type: "string", meaning: "`healthy`, `degraded`, `unhealthy` or `unknown`: the one recorded before" },
      to: { type: "string", meaning: "the one that holds" },
      reason: { type: "string", meaning: "why; empty when healthy" },
      checks: { type: "object[]", meaning: "every check of then: `name`, `node_id`, `status`, `reason`" },
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
  "service.restorable_stale": {
    when: "the newest moment that a service can be restored to is 15 minutes old, though its engine runs; told once until that is over",
    data: { ...serviceData, newest_point: { type: "time", meaning: "the newest moment that it can be restored to" } },
    example: { ...running, newest_point: "2026-11-22T10:00:00.000Z" },
  },
  "service.maintenance_scheduled": {
    when: "an update of a service has a time at which it will be applied, or another one than before: a day ahead, urgent ones at once",
    data: {
      ...serviceData,
      update_id: { type: "string", meaning: "the update" },
      kind: { type: "string", meaning: "`engine_minor`, `image`, `guest_kernel`, `keeper` or `restart`" },
      title: { type: "string", meaning: "what it is, for people" },
      urgent: { type: "boolean", meaning: "it waits for the window no longer than its notice" },
      apply_at: { type: "time", meaning: "when it begins unless it is applied before" },
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
    when: "updates of a service begin to be applied",
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
      error_message: { type: "string", meaning: "what went wrong" },
      rolled_back: { type: "boolean", meaning: "the service runs as before; false: it is in Error" },
      data_restored: {
        type: "boolean",
        meaning: "the data went back to the snapshot from before the update; false: they stayed as they were",
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
