import { type ServedService, serve } from "@holdfast/common/call.ts";
import { QueueService } from "@holdfast/proto/holdfast/v1/queue_pb.ts";
import { createEnqueue } from "./message/enqueue.ts";
import { createLargeRequests } from "./message/large-requests.ts";
import { createPayloadChecks } from "./message/payload-checks.ts";
import { type QueueMessageDeps, queueMessages } from "./message/queue-message-api.ts";
import { type QueueDefinitionDeps, queueDefinitions } from "./queue-api.ts";

/** The RPCs of queues and of their messages. */
export function createQueueApi(
  deps: QueueDefinitionDeps & Omit<QueueMessageDeps, "enqueue" | "payloads">,
): ServedService {
  const payloads = createPayloadChecks();
  const enqueue = createEnqueue(deps.calls, createLargeRequests(deps.clock.monotonicMs));
  const handlers = { ...queueDefinitions(deps), ...queueMessages({ ...deps, enqueue, payloads }) };
  return serve(QueueService, handlers, { enqueueMessages: payloads.check });
}
