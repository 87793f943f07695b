import { create, toBinary } from "@bufbuild/protobuf";
import { QueueResponseSchema, QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import {
  CallQueueResultSchema,
  ListEngineQueuesResultSchema,
  PutEngineQueueResultSchema,
  RemoveEngineQueueResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { decodeIncrementally, packContent, unpackContent } from "./packed-content.ts";
import { queuesOf, type TaskHandler } from "./task-handler.ts";

export const putEngineQueue: TaskHandler<"putEngineQueue"> = {
  async run({ queue, adopt }, { engine, signal }) {
    if (queue === undefined) throw new TaskFailed("invalid_task", "The task names no queue.");
    const { driver, instance } = await engine();
    await queuesOf(driver).put(instance, queue, { adopt }, signal);
    return create(PutEngineQueueResultSchema);
  },
};

export const removeEngineQueue: TaskHandler<"removeEngineQueue"> = {
  async run({ database, id }, { engine, signal }) {
    const { driver, instance } = await engine();
    const { deleted, purged } = await queuesOf(driver).remove(instance, { database, id }, signal);
    return create(RemoveEngineQueueResultSchema, { deleted, purged: BigInt(purged) });
  },
};

export const listEngineQueues: TaskHandler<"listEngineQueues"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineQueuesResultSchema, { queues: await queuesOf(driver).list(instance, signal) });
  },
};

export const callQueue: TaskHandler<"callQueue"> = {
  async run({ database, request: packed }, context) {
    if (packed === undefined) throw new TaskFailed("invalid_task", "The task has no request.");
    const request = await decodeIncrementally(QueueRequestSchema, await unpackContent(packed, context));
    const { driver, instance } = await context.engine();
    const response = await queuesOf(driver).call(instance, database, request, context.signal);
    return create(CallQueueResultSchema, {
      response: await packContent(toBinary(QueueResponseSchema, response), context),
    });
  },
};
