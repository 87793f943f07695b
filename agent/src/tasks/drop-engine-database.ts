import { create } from "@bufbuild/protobuf";
import { DropEngineDatabaseResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf } from "./facets.ts";
import type { InputOf, TaskContext, TaskHandler } from "./task-handler.ts";

export const dropEngineDatabase: TaskHandler<"dropEngineDatabase"> = {
  /** A database that is gone after its removal was begun went by it. */
  async inspect(input, context) {
    await drop(input, context);
    return create(DropEngineDatabaseResultSchema, { existed: true });
  },
  run: async (input, context) => create(DropEngineDatabaseResultSchema, await drop(input, context)),
};

async function drop({ name }: InputOf<"dropEngineDatabase">, { engine, signal, withinMs }: TaskContext) {
  const { driver, instance } = await engine();
  return databasesOf(driver).drop(instance, name, signal, { withinMs });
}
