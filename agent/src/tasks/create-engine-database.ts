import { create } from "@bufbuild/protobuf";
import { CreateEngineDatabaseResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const createEngineDatabase: TaskHandler<"createEngineDatabase"> = {
  async run(database, { engine, signal, withinMs }) {
    const { driver, instance } = await engine();
    const created = await databasesOf(driver).create(instance, database, signal, { withinMs });
    return create(CreateEngineDatabaseResultSchema, created);
  },
};
