import { create, toBinary } from "@bufbuild/protobuf";
import { QueueAnswerSchema, QueueRequestSchema } from "@holdfast/proto/holdfast/agent/v1/queue_call_pb.ts";
import { CallQueueResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { decodeInTurns } from "./decode-in-turns.ts";
import { queuesOf } from "./facets.ts";
import { packContent, unpackContent } from "./packed-content.ts";
import type { TaskHandler } from "./task-handler.ts";

export const callQueue: TaskHandler<"callQueue"> = {
  async run({ database, request }, context) {
    if (request === undefined) throw new TaskFailed("invalid_task", "the task asks for nothing");
    const asked = await decodeInTurns(QueueRequestSchema, await unpackContent(request, context));
    const { driver, instance } = await context.engine();
    const answer = toBinary(QueueAnswerSchema, await queuesOf(driver).call(instance, database, asked, context.signal));
    return create(CallQueueResultSchema, { answer: await packContent(answer, context) });
  },
};
