import {
  type CreateQueueRequestSchema,
  QueueService,
  type UpdateQueueRequestSchema,
} from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { casesOf, type Contract, objectScoped, ofService } from "@holdfast/testing/contract/contract.ts";
import { page, type SameInput, sameInputs, type sdk, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";

const queueSettings = { visibility_timeout_seconds: 1, max_attempts: 1, dlq_enabled: true };

export default {
  authorization: [
    casesOf(QueueService, {
      createQueue: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      listQueues: ofService,
      getQueue: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      updateQueue: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs", max_attempts: 1 })),
      deleteQueue: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
    }),
  ],
  sdk: [
    sdkCalls(QueueService, {
      createQueue: (c) => c.queues.create("i", { name: "q", database_name: "d", ...queueSettings }),
      listQueues: (c) => c.queues.list("i", page),
      getQueue: (c) => c.queues.get("i", "q"),
      updateQueue: (c) => c.queues.update("i", "q", queueSettings),
      deleteQueue: (c) => c.queues.delete("i", "q"),
    }),
  ],
  sdkInputs: sameInputs<{
    newQueue: SameInput<sdk.NewQueue, typeof CreateQueueRequestSchema>;
    queueChange: SameInput<sdk.QueueChange & { readonly name: string }, typeof UpdateQueueRequestSchema>;
  }>(),
  nameScopes: {
    "queue-api.ts": "service",
  },
} satisfies Contract;
