import { create } from "@bufbuild/protobuf";
import { RemoveEngineQueueResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { queuesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const removeEngineQueue: TaskHandler<"removeEngineQueue"> = {
  async run({ database, id }, { engine, signal }) {
    const { driver, instance } = await engine();
    const { gone, purged } = await queuesOf(driver).remove(instance, { database, id }, signal);
    return create(RemoveEngineQueueResultSchema, { gone, purged: BigInt(purged) });
  },
};
