import { create } from "@bufbuild/protobuf";
import { ListEngineDatabasesResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const listEngineDatabases: TaskHandler<"listEngineDatabases"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineDatabasesResultSchema, { databases: await databasesOf(driver).list(instance, signal) });
  },
};
