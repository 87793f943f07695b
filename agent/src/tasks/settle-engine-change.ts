import { create } from "@bufbuild/protobuf";
import { SettleEngineChangeResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { databasesOf, usersOf } from "./facets.ts";
import { TaskFailed } from "../task-failed.ts";
import type { InputOf, TaskContext, TaskHandler } from "./task-handler.ts";

export const settleEngineChange: TaskHandler<"settleEngineChange"> = {
  async run(input, context) {
    await context.withdraw(input.withdrawnTasks);
    return create(SettleEngineChangeResultSchema, await look(input, context));
  },
};

async function look({ change }: InputOf<"settleEngineChange">, { engine, signal, withinMs }: TaskContext) {
  const { driver, instance } = await engine();
  const options = { withinMs };
  const user = (username: string, verifier: string) =>
    usersOf(driver).settled(instance, username, verifier, signal, options);
  const database = (name: string, mark: string) => databasesOf(driver).settled(instance, name, mark, signal, options);
  switch (change.case) {
    case "putEngineUser": {
      const { username = "", verifier = "" } = change.value.user ?? {};
      const { matches, role } = await user(username, verifier);
      return { taken: matches, role };
    }
    case "dropEngineUser": {
      const { exists, role } = await user(change.value.username, "");
      return { taken: !exists, role };
    }
    case "createEngineDatabase":
      return { taken: (await database(change.value.name, change.value.mark)).marked };
    case "dropEngineDatabase":
      return { taken: !(await database(change.value.name, "")).exists };
    case undefined:
      throw new TaskFailed("invalid_task", "the task names no change");
  }
}
