import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { casesOf, type Contract, objectScoped } from "@holdfast/testing/contract/contract.ts";
import { page, sdkCalls } from "@holdfast/testing/contract/sdk-calls.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

export default {
  authorization: [
    casesOf(QueueService, {
      enqueueMessages: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "jobs",
        messages: [{ payload: "e30=" }],
      })),
      listMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      countMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      getMessageCounts: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "jobs",
        task_id: "1a.guessed",
      })),
      claimMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      ackMessages: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "jobs",
        messages: [{ receipt: "1a.guessed" }],
      })),
      nackMessages: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "jobs",
        messages: [{ receipt: "1a.guessed" }],
      })),
      extendMessages: objectScoped(({ serviceId }) => ({
        service_id: serviceId,
        name: "jobs",
        messages: [{ receipt: "1a.guessed" }],
      })),
      listDeadMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      purgeDeadMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      redriveMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
      purgeMessages: objectScoped(({ serviceId }) => ({ service_id: serviceId, name: "jobs" })),
    }),
  ],
  marked: async ({ make, get, marker, existing }) => {
    const path = `/managed-services/${existing.serviceId}/queues`;
    await make(path, { name: marker });
    const isActive = async () => (await get<{ status: string }>(`${path}/${marker}`)).status === "Active";
    await waitUntil("the queue exists", isActive);
    return make(`${path}/${marker}/messages`, { messages: [{ payload: { text: marker } }] });
  },
  sdk: [
    sdkCalls(QueueService, {
      enqueueMessages: (c) => c.queues.enqueue("i", "q", { messages: [{ payload: {}, delay_seconds: 1 }] }),
      listMessages: (c) => c.queues.messages("i", "q", { task_id: "t", ...page }),
      countMessages: (c) => c.queues.count("i", "q"),
      getMessageCounts: (c) => c.queues.counts("i", "q", "t"),
      claimMessages: (c) => c.queues.claim("i", "q", { max: 1, visibility_timeout_seconds: 1, wait_seconds: 1 }),
      ackMessages: (c) => c.queues.ack("i", "q", { messages: [{ receipt: "r" }] }),
      nackMessages: (c) =>
        c.queues.nack("i", "q", { messages: [{ receipt: "r", delay_seconds: 1, error: "e", discard: true }] }),
      extendMessages: (c) => c.queues.extend("i", "q", { messages: [{ receipt: "r", visibility_timeout_seconds: 1 }] }),
      listDeadMessages: (c) => c.queues.dead("i", "q", page),
      purgeDeadMessages: (c) => c.queues.purgeDead("i", "q"),
      redriveMessages: (c) => c.queues.redrive("i", "q", [1]),
      purgeMessages: (c) => c.queues.purge("i", "q"),
    }),
  ],
  listBounds: {
    "holdfast.v1.ClaimMessagesResponse.messages": "100, and 4 MiB",
    "holdfast.v1.ReceiptsResponse.done": "the members of the request",
    "holdfast.v1.ReceiptsResponse.lost": "the members of the request",
  },
} satisfies Contract;
