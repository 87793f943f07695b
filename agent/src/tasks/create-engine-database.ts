import { create } from "@bufbuild/protobuf";
import { CreateEngineDatabaseResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const createEngineDatabase: TaskHandler<"createEngineDatabase"> = {
  async run({ name, owner }, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(CreateEngineDatabaseResultSchema, await databasesOf(driver).create(instance, name, owner, signal));
  },
};
