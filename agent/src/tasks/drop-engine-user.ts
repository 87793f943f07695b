import { create } from "@bufbuild/protobuf";
import { DropEngineUserResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { usersOf } from "./facets.ts";
import type { InputOf, TaskContext, TaskHandler } from "./task-handler.ts";

export const dropEngineUser: TaskHandler<"dropEngineUser"> = {
  /** A user that is gone after its removal was begun went by it. */
  async inspect(input, context) {
    await drop(input, context);
    return create(DropEngineUserResultSchema, { existed: true });
  },
  run: async (input, context) => create(DropEngineUserResultSchema, await drop(input, context)),
};

async function drop({ username }: InputOf<"dropEngineUser">, { engine, signal, withinMs }: TaskContext) {
  const { driver, instance } = await engine();
  return usersOf(driver).drop(instance, username, signal, { withinMs });
}
