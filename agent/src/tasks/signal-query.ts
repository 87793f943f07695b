import { create } from "@bufbuild/protobuf";
import { SignalQueryResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { sessionsOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const signalQuery: TaskHandler<"signalQuery"> = {
  async run({ session, terminate }, { engine, signal }) {
    if (session === undefined) throw new TaskFailed("invalid_task", "the task names no session");
    const { driver, instance } = await engine();
    return create(SignalQueryResultSchema, await sessionsOf(driver).signal(instance, session, { terminate }, signal));
  },
};
