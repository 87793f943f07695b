import { create } from "@bufbuild/protobuf";
import { PutEngineUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { usersOf } from "./facets.ts";
import { TaskFailed } from "./task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

export const putEngineUser: TaskHandler<"putEngineUser"> = {
  async run({ user }, { engine, signal }) {
    if (user === undefined) throw new TaskFailed("invalid_task", "the task names no user");
    const { driver, instance } = await engine();
    return create(PutEngineUserResultSchema, await usersOf(driver).put(instance, user, signal));
  },
};
