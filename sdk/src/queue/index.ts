export { createQueue, type HttpQueueOptions, type SqlQueueOptions } from "./create-queue.ts";
export type { QueueClient } from "./http-backend.ts";
export {
  ClaimLost,
  Discard,
  type EnqueueOptions,
  type Handler,
  type HandlerContext,
  HandlerTimedOut,
  type Message,
  type Queryable,
  type Queue,
  type Worker,
  type WorkOptions,
  type WorkTally,
} from "./queue-types.ts";
