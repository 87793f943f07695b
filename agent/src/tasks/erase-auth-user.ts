import { create } from "@bufbuild/protobuf";
import { EraseAuthUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const eraseAuthUser: TaskHandler<"eraseAuthUser"> = {
  async run({ database, user }, { engine, signal }) {
    if (user.case === undefined) throw new TaskFailed("invalid_task", "the task names no user");
    const { driver, instance } = await engine();
    const who = user.case === "userId" ? { userId: user.value } : { email: user.value };
    const userId = await identityOf(driver).erase(instance, database, who, signal);
    return create(EraseAuthUserResultSchema, { erased: userId !== undefined, userId: userId ?? "" });
  },
};
