import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { EventDefinition } from "#kernel/outbox/event-definition.ts";
import type { QueueObject } from "./queue.ts";
import type { QueueEffect } from "./queue-lifecycle.ts";

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<QueueEffect, string | undefined> = {
  none:            undefined,
  announceActive:  "queue.active",
  announceFailed:  "queue.failed",
  announceDeleted: "queue.deleted",
};

/** The event of a lifecycle effect, whose object is the queue's service; undefined for an effect without one. */
export function queueEvent(effect: QueueEffect, { metadata, spec, status }: QueueObject): NewEvent | undefined {
  const type = announced[effect];
  if (type === undefined) return undefined;
  return {
    type,
    organizationId: metadata.organizationId,
    objectKind: "managed-service",
    objectId: spec.serviceId,
    data: {
      service_id: spec.serviceId,
      queue_id: spec.queueId,
      queue_name: metadata.name,
      database_name: spec.databaseName,
      status: status.state,
      ...(effect === "announceFailed" ? { error_message: status.errorMessage ?? "" } : {}),
    },
  };
}

const queueData = {
  service_id: { type: "uuid", meaning: "id of the service" },
  queue_id: { type: "uuid", meaning: "id of the queue" },
  queue_name: { type: "string", meaning: "name of the queue" },
  database_name: { type: "string", meaning: "database of the queue" },
  status: { type: "string", meaning: "status of the queue after the event" },
} as const satisfies EventDefinition["data"];

const queueExample = {
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  queue_id: "0198f2a4-8f31-7c02-9d4e-6a1b7c3d5e80",
  queue_name: "jobs",
  database_name: "defaultdb",
};

type QueueEventType = `queue.${"active" | "failed" | "deleted"}`;

/** The events of queues. */
export const queueEventDefinitions = {
  "queue.active": {
    when: "a queue accepts messages for the first time",
    data: queueData,
    example: { ...queueExample, status: "Active" },
    optIn: true,
  },
  "queue.failed": {
    when: "a queue could not be created, changed or deleted",
    data: { ...queueData, error_message: { type: "string", meaning: "reason of the failure" } },
    example: { ...queueExample, status: "Failed", error_message: "The database archive does not exist." },
    optIn: true,
  },
  "queue.deleted": {
    when: "a queue and its messages were deleted",
    data: queueData,
    example: { ...queueExample, status: "Deprovisioning" },
    optIn: true,
  },
} as const satisfies Readonly<Record<QueueEventType, EventDefinition>>;
