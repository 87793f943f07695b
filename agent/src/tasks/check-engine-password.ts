import { create } from "@bufbuild/protobuf";
import { CheckEnginePasswordResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { usersOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const checkEnginePassword: TaskHandler<"checkEnginePassword"> = {
  async run({ username, verifier }, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(CheckEnginePasswordResultSchema, await usersOf(driver).check(instance, username, verifier, signal));
  },
};
