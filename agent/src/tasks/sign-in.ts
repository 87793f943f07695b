import { create } from "@bufbuild/protobuf";
import {
  AddAuthUserResultSchema,
  EraseAuthUserResultSchema,
  PrepareAuthSchemaResultSchema,
  ReadAuthRowsResultSchema,
  ReplayAuthErasuresResultSchema,
  RevokeAuthSessionResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { identityOf, type TaskHandler } from "./task-handler.ts";

const maxPageSize = 200;

export const prepareAuthSchema: TaskHandler<"prepareAuthSchema"> = {
  async run({ database, role, verifier }, { engine, signal }) {
    const { driver, instance } = await engine();
    const version = await identityOf(driver).prepare(instance, { database, role, verifier }, signal);
    return create(PrepareAuthSchemaResultSchema, { version });
  },
};

export const addAuthUser: TaskHandler<"addAuthUser"> = {
  async run({ database, userId: id, email }, { engine, signal }) {
    const { driver, instance } = await engine();
    const added = await identityOf(driver).add(instance, database, { id, email }, signal);
    return create(AddAuthUserResultSchema, { added });
  },
};

export const eraseAuthUser: TaskHandler<"eraseAuthUser"> = {
  async run({ database, user }, { engine, signal }) {
    if (user.case === undefined) throw new TaskFailed("invalid_task", "The task names no user.");
    const { driver, instance } = await engine();
    const selector = user.case === "userId" ? { userId: user.value } : { email: user.value };
    const userId = await identityOf(driver).erase(instance, database, selector, signal);
    return create(EraseAuthUserResultSchema, { erased: userId !== undefined, userId: userId ?? "" });
  },
};

export const revokeAuthSession: TaskHandler<"revokeAuthSession"> = {
  async run({ database, sessionId }, { engine, signal }) {
    const { driver, instance } = await engine();
    const existed = await identityOf(driver).revoke(instance, database, sessionId, signal);
    return create(RevokeAuthSessionResultSchema, { existed });
  },
};

export const readAuthRows: TaskHandler<"readAuthRows"> = {
  async run({ database, table, userId, email, after, limit }, { engine, signal }) {
    if (table !== "users" && table !== "sessions" && table !== "events")
      throw new TaskFailed("invalid_task", `There is no table ${table}.`);
    const { driver, instance } = await engine();
    const query = { table, userId, email, after, limit: Math.min(Math.max(limit, 1), maxPageSize) } as const;
    const { rows, nextAfter } = await identityOf(driver).read(instance, database, query, signal);
    return create(ReadAuthRowsResultSchema, { rows: [...rows], nextAfter });
  },
};

export const replayAuthErasures: TaskHandler<"replayAuthErasures"> = {
  async run({ database, userIds, sessionIds }, { engine, signal }) {
    const { driver, instance } = await engine();
    const counts = await identityOf(driver).replay(instance, database, { userIds, sessionIds }, signal);
    return create(ReplayAuthErasuresResultSchema, counts);
  },
};
