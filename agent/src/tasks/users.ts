import { create } from "@bufbuild/protobuf";
import {
  CheckEnginePasswordResultSchema,
  DropEngineUserResultSchema,
  ExpectedUser,
  ListEngineUsersResultSchema,
  PutEngineUserResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { PutUserOptions } from "../engines/contents-facets.ts";
import { TaskFailed } from "../task-failed.ts";
import { type InputOf, type TaskContext, type TaskHandler, usersOf } from "./task-handler.ts";

export const listEngineUsers: TaskHandler<"listEngineUsers"> = {
  async run(_input, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(ListEngineUsersResultSchema, { users: await usersOf(driver).list(instance, signal) });
  },
};

const expectations: Readonly<Record<ExpectedUser, PutUserOptions["expected"]>> = {
  [ExpectedUser.UNSPECIFIED]: undefined,
  [ExpectedUser.ABSENT]: "absent",
  [ExpectedUser.PRESENT]: "present",
};

export const putEngineUser: TaskHandler<"putEngineUser"> = {
  async run({ user, expected }, { engine, signal, withinMs }) {
    if (user === undefined) throw new TaskFailed("invalid_task", "The task names no user.");
    const { driver, instance } = await engine();
    const options = { withinMs, expected: expectations[expected] };
    return create(PutEngineUserResultSchema, await usersOf(driver).put(instance, user, signal, options));
  },
};

export const dropEngineUser: TaskHandler<"dropEngineUser"> = {
  /** An earlier run may have dropped the user without recording its result, so it counts as dropped. */
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

export const checkEnginePassword: TaskHandler<"checkEnginePassword"> = {
  async run({ username, verifier }, { engine, signal }) {
    const { driver, instance } = await engine();
    return create(CheckEnginePasswordResultSchema, await usersOf(driver).check(instance, username, verifier, signal));
  },
};
