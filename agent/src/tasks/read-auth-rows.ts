import { create } from "@bufbuild/protobuf";
import { ReadAuthRowsResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { TaskFailed } from "../task-failed.ts";
import { identityOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const readAuthRows: TaskHandler<"readAuthRows"> = {
  async run({ database, table, userId, email, after, limit }, { engine, signal }) {
    if (table !== "users" && table !== "sessions" && table !== "events")
      throw new TaskFailed("invalid_task", `there is no table ${table}`);
    const { driver, instance } = await engine();
    const asked = { table, userId, email, after, limit: Math.min(Math.max(limit, 1), 200) } as const;
    const { rows, nextAfter } = await identityOf(driver).read(instance, database, asked, signal);
    return create(ReadAuthRowsResultSchema, { rows: [...rows], nextAfter });
  },
};
