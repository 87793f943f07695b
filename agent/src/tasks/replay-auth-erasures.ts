import { create } from "@bufbuild/protobuf";
import { ReplayAuthErasuresResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const replayAuthErasures: TaskHandler<"replayAuthErasures"> = {
  async run({ database, userIds, sessionIds }, { engine, signal }) {
    const { driver, instance } = await engine();
    const counts = await identityOf(driver).replay(instance, database, { userIds, sessionIds }, signal);
    return create(ReplayAuthErasuresResultSchema, counts);
  },
};
