import { create } from "@bufbuild/protobuf";
import { DropEngineDatabaseResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const dropEngineDatabase: TaskHandler<"dropEngineDatabase"> = {
  async run({ name }, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(DropEngineDatabaseResultSchema, await databasesOf(driver).drop(instance, name, signal));
  },
};
