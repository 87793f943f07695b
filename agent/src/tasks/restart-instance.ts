import { create } from "@bufbuild/protobuf";
import { RestartInstanceResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskHandler } from "./task-handler.ts";

export const restartInstance: TaskHandler<"restartInstance"> = {
  /** The count tells: a restart that happened before a crash does not happen again. */
  async run({ restartCount }, { supervisor, signal }) {
    await supervisor.restart(restartCount, signal);
    return create(RestartInstanceResultSchema);
  },
};
