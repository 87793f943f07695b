import { create } from "@bufbuild/protobuf";
import { ExpectedUser, PutEngineUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PutUserOptions } from "../engines/contents-facets.ts";
import { usersOf } from "./facets.ts";
import { TaskFailed } from "../task-failed.ts";
import type { TaskHandler } from "./task-handler.ts";

const expectations: Readonly<Record<ExpectedUser, PutUserOptions["expected"]>> = {
  [ExpectedUser.UNSPECIFIED]: undefined,
  [ExpectedUser.ABSENT]: "absent",
  [ExpectedUser.PRESENT]: "present",
};

export const putEngineUser: TaskHandler<"putEngineUser"> = {
  async run({ user, expected }, { engine, signal, withinMs }) {
    if (user === undefined) throw new TaskFailed("invalid_task", "the task names no user");
    const { driver, instance } = await engine();
    const options = { withinMs, expected: expectations[expected] };
    return create(PutEngineUserResultSchema, await usersOf(driver).put(instance, user, signal, options));
  },
};
