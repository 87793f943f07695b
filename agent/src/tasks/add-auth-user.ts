import { create } from "@bufbuild/protobuf";
import { AddAuthUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const addAuthUser: TaskHandler<"addAuthUser"> = {
  async run({ database, userId: id, email }, { engine, signal }) {
    const { driver, instance } = await engine();
    const added = await identityOf(driver).add(instance, database, { id, email }, signal);
    return create(AddAuthUserResultSchema, { added });
  },
};
