import { create } from "@bufbuild/protobuf";
import { ListEngineQueuesResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { queuesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const listEngineQueues: TaskHandler<"listEngineQueues"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineQueuesResultSchema, { queues: await queuesOf(driver).list(instance, signal) });
  },
};
