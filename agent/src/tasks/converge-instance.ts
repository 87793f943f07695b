import { create } from "@bufbuild/protobuf";
import { ConvergeInstanceResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

export const convergeInstance: TaskHandler<"convergeInstance"> = {
  async run({ instance }, { supervisor, signal }) {
    if (instance === undefined) throw new TaskFailed("invalid_task", "the task names no instance");
    const { pendingRestart, rejected } = await supervisor.hold(instance, signal);
    return create(ConvergeInstanceResultSchema, { pendingRestart: [...pendingRestart], rejected: { ...rejected } });
  },
};
