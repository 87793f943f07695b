import { create } from "@bufbuild/protobuf";
import { RevokeAuthSessionResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const revokeAuthSession: TaskHandler<"revokeAuthSession"> = {
  async run({ database, sessionId }, { engine, signal }) {
    const { driver, instance } = await engine();
    const existed = await identityOf(driver).revoke(instance, database, sessionId, signal);
    return create(RevokeAuthSessionResultSchema, { existed });
  },
};
