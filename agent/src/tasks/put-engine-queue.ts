import { create } from "@bufbuild/protobuf";
import { PutEngineQueueResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { queuesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const putEngineQueue: TaskHandler<"putEngineQueue"> = {
  async run({ queue, adopt }, { engine, signal }) {
    if (queue === undefined) throw new TaskFailed("invalid_task", "the task names no queue");
    const { driver, instance } = await engine();
    await queuesOf(driver).put(instance, queue, { adopt }, signal);
    return create(PutEngineQueueResultSchema);
  },
};
