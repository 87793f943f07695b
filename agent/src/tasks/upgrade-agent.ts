import { create } from "@bufbuild/protobuf";
import { UpgradeAgentResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { TaskHandler } from "./task-handler.ts";

/** The outgoing agent begins the task; its successor finds the intent in the journal and has the result. */
export const upgradeAgent: TaskHandler<"upgradeAgent"> = {
  async inspect({ digest }, { upgrade }) {
    if (upgrade.digest !== digest) return undefined;
    return create(UpgradeAgentResultSchema, { digest, gapMs: upgrade.gapMs });
  },
  async run(input, { taskId: id, upgrade, channel, signal, progress }) {
    if (upgrade.digest === input.digest) return create(UpgradeAgentResultSchema, { digest: input.digest });
    return upgrade.perform(input, { id, channel, signal, progress });
  },
};
