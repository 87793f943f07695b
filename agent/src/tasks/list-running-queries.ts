import { create } from "@bufbuild/protobuf";
import { ListRunningQueriesResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { sessionsOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const listRunningQueries: TaskHandler<"listRunningQueries"> = {
  async run({ limit }, { engine, signal }) {
    const { driver, instance } = await engine();
    const { queries, truncated } = await sessionsOf(driver).running(instance, limit, signal);
    return create(ListRunningQueriesResultSchema, {
      queries: queries.map(({ transactionSeconds, blockedBy, ...query }) => ({
        ...query,
        blockedBy: [...blockedBy],
        ...(transactionSeconds !== undefined && { transactionSeconds }),
      })),
      truncated,
    });
  },
};
