import { create } from "@bufbuild/protobuf";
import { PrepareAuthSchemaResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const prepareAuthSchema: TaskHandler<"prepareAuthSchema"> = {
  async run({ database, role, verifier }, { engine, signal }) {
    const { driver, instance } = await engine();
    const version = await identityOf(driver).prepare(instance, { database, role, verifier }, signal);
    return create(PrepareAuthSchemaResultSchema, { version });
  },
};
