import type { EventDefinition } from "#kernel/outbox/event-definition.ts";

const queueData = {
  service_id: { type: "uuid", meaning: "the service" },
  queue_id: { type: "uuid", meaning: "the queue" },
  queue_name: { type: "string", meaning: "its name" },
  database_name: { type: "string", meaning: "the database that it is in" },
  status: { type: "string", meaning: "its status then" },
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
    when: "a queue takes messages for the first time",
    data: queueData,
    example: { ...queueExample, status: "Active" },
    optIn: true,
  },
  "queue.failed": {
    when: "a queue could not be made, changed or deleted",
    data: { ...queueData, error_message: { type: "string", meaning: "what went wrong" } },
    example: { ...queueExample, status: "Failed", error_message: "The database archive does not exist." },
    optIn: true,
  },
  "queue.deleted": {
    when: "a queue is gone with its messages",
    data: queueData,
    example: { ...queueExample, status: "Deprovisioning" },
    optIn: true,
  },
} as const satisfies Readonly<Record<QueueEventType, EventDefinition>>;
