import { create } from "@bufbuild/protobuf";
import {
  CreateEngineDatabaseResultSchema,
  DropEngineDatabaseResultSchema,
  ListEngineDatabasesResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf, type InputOf, type TaskContext, type TaskHandler } from "./task-handler.ts";

export const listEngineDatabases: TaskHandler<"listEngineDatabases"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineDatabasesResultSchema, { databases: await databasesOf(driver).list(instance, signal) });
  },
};

export const createEngineDatabase: TaskHandler<"createEngineDatabase"> = {
  async run(database, { engine, signal, withinMs }) {
    const { driver, instance } = await engine();
    const created = await databasesOf(driver).create(instance, database, signal, { withinMs });
    return create(CreateEngineDatabaseResultSchema, created);
  },
};

export const dropEngineDatabase: TaskHandler<"dropEngineDatabase"> = {
  /** An earlier run may have dropped the database without recording its result, so it counts as dropped. */
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
