import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { ReadQueryStatisticsResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isQueryOrder } from "../engines/insight-facets.ts";
import { TaskFailed } from "../task-failed.ts";
import { queryStatsOf } from "./facets.ts";
import type { TaskHandler } from "./task-handler.ts";

export const readQueryStatistics: TaskHandler<"readQueryStatistics"> = {
  async run({ limit, order }, { engine, signal }) {
    if (!isQueryOrder(order)) throw new TaskFailed("invalid_task", `${order} is no order of statistics`);
    const { driver, instance } = await engine();
    const told = await queryStatsOf(driver).read(instance, { limit, order }, signal);
    return create(ReadQueryStatisticsResultSchema, {
      queries: told.queries.map(({ calls, rows, cacheHitRatio, ...statistic }) => ({
        ...statistic,
        calls: BigInt(calls),
        rows: BigInt(rows),
        ...(cacheHitRatio !== undefined && { cacheHitRatio }),
      })),
      totalCount: BigInt(told.totalCount),
      collectedAt: timestampFromDate(told.collectedAt),
      since: timestampFromDate(told.since),
    });
  },
};
