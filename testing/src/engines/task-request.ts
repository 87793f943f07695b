import { create } from "@bufbuild/protobuf";
import type { TaskRequest } from "@holdfast/controller/fleet/task/task.ts";
import { ListEngineUsersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";

/** A task that changes nothing, in the lane of changes. */
export const taskRequest: TaskRequest = {
  ownerId: "s",
  generation: 1,
  term: 0,
  lane: "control",
  input: { case: "listEngineUsers", value: create(ListEngineUsersSchema) },
  deadlineMs: 60_000,
};
