import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { QueueObject } from "./queue.ts";
import type { QueueEffect } from "./queue-lifecycle.ts";

// biome-ignore format: a table, aligned so that it reads as one
const announced: Record<QueueEffect, string | undefined> = {
  none:            undefined,
  announceActive:  "queue.active",
  announceFailed:  "queue.failed",
  announceDeleted: "queue.deleted",
};

/** The event that an effect of the life cycle announces: one of the service that the queue is in. */
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
