import { create } from "@bufbuild/protobuf";
import { ListEngineUsersResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { usersOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const listEngineUsers: TaskHandler<"listEngineUsers"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineUsersResultSchema, { users: await usersOf(driver).list(instance, signal) });
  },
};
