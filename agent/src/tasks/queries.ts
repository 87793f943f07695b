import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import {
  ListRunningQueriesResultSchema,
  ReadQueryStatisticsResultSchema,
  ReadUnsupportedFeaturesResultSchema,
  RunConsoleQueryResultSchema,
  SignalQueryResultSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { isQueryOrder } from "../engines/insight-facets.ts";
import { TaskFailed } from "../task-failed.ts";
import { packContent } from "./packed-content.ts";
import { queryStatsOf, readOnlyQueryOf, sessionsOf, type TaskHandler, unsupportedFeaturesOf } from "./task-handler.ts";

export const readQueryStatistics: TaskHandler<"readQueryStatistics"> = {
  async run({ limit, order }, { engine, signal }) {
    if (!isQueryOrder(order)) throw new TaskFailed("invalid_task", `${order} is not an order of statistics.`);
    const { driver, instance } = await engine();
    const statistics = await queryStatsOf(driver).read(instance, { limit, order }, signal);
    return create(ReadQueryStatisticsResultSchema, {
      queries: statistics.queries.map(({ calls, rows, cacheHitRatio, ...statistic }) => ({
        ...statistic,
        calls: BigInt(calls),
        rows: BigInt(rows),
        ...(cacheHitRatio !== undefined && { cacheHitRatio }),
      })),
      totalCount: BigInt(statistics.totalCount),
      collectedAt: timestampFromDate(statistics.collectedAt),
      since: timestampFromDate(statistics.since),
    });
  },
};

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

export const signalQuery: TaskHandler<"signalQuery"> = {
  async run({ session, terminate }, { engine, signal }) {
    if (session === undefined) throw new TaskFailed("invalid_task", "The task names no session.");
    const { driver, instance } = await engine();
    return create(SignalQueryResultSchema, await sessionsOf(driver).signal(instance, session, { terminate }, signal));
  },
};

export const readUnsupportedFeatures: TaskHandler<"readUnsupportedFeatures"> = {
  async run(_, { engine, signal }) {
    const { driver, instance } = await engine();
    const { features, since } = await unsupportedFeaturesOf(driver).read(instance, signal);
    return create(ReadUnsupportedFeaturesResultSchema, {
      features: features.map(({ count, ...feature }) => ({ ...feature, count: BigInt(count) })),
      since: timestampFromDate(since),
    });
  },
};

export const runConsoleQuery: TaskHandler<"runConsoleQuery"> = {
  async run(query, context) {
    const { driver, instance } = await context.engine();
    const { qualifiedSql, qualifiedNames: qualified, contentBytesMax: bytesMax } = query;
    const statement = { ...query, bytesMax, qualified, sql: qualifiedSql || query.sql };
    const result = await readOnlyQueryOf(driver).run(instance, statement, context.signal);
    if ("refusal" in result) return create(RunConsoleQueryResultSchema, { refusal: result.refusal });
    const { columns, rowCount, truncated } = result;
    const content = await packContent(Buffer.from(result.rows, "utf8"), context);
    const executionMs = BigInt(result.executionMs);
    return create(RunConsoleQueryResultSchema, { columns: [...columns], rowCount, truncated, executionMs, content });
  },
};
