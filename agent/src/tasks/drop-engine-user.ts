import { create } from "@bufbuild/protobuf";
import { DropEngineUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { usersOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const dropEngineUser: TaskHandler<"dropEngineUser"> = {
  async run({ username }, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(DropEngineUserResultSchema, await usersOf(driver).drop(instance, username, signal));
  },
};
