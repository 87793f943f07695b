import { setImmediate as breathe } from "node:timers/promises";
import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { EngineQueryStatistic, ReadQueryStatisticsResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createMachineTasks, type MachineTaskDeps, type MachineTasks } from "#services/service/machine-task-source.ts";
import { loadRedaction } from "./redactions.ts";

/** The asynchronous tasks that read query statistics. */
export function createStatisticsTasks(deps: MachineTaskDeps): MachineTasks {
  return createMachineTasks(
    {
      type: "query_stats",
      scope: "services:read",
      resultOf: (output, { spec }) =>
        output.case === "readQueryStatistics" ? statisticsJson(output.value, spec.databaseType) : "null",
    },
    deps,
  );
}

/** Query statistics as the stored result of a task. */
export interface StatisticsJson {
  readonly queries: readonly {
    readonly query: string;
    readonly calls: number;
    readonly total_time: number;
    readonly mean_time: number;
    readonly rows: number;
    readonly cache_hit_ratio: number | null;
    readonly query_id: string;
    readonly database: string;
  }[];
  readonly total_count: number;
  readonly collected_at: string;
  readonly database_type: string;
  readonly since: string;
}

/** The agent's statistics as JSON, with queries without literals. */
async function statisticsJson(result: ReadQueryStatisticsResult, databaseType: string): Promise<string> {
  const queries = await statisticMessages(result.queries, databaseType);
  return JSON.stringify({
    queries: queries.map((entry) => ({
      query: entry.query,
      calls: Number(entry.calls),
      total_time: entry.totalTime,
      mean_time: entry.meanTime,
      rows: Number(entry.rows),
      cache_hit_ratio: entry.cacheHitRatio ?? null,
      query_id: entry.queryId,
      database: entry.database,
    })),
    total_count: Number(result.totalCount),
    collected_at: textOf(result.collectedAt),
    database_type: databaseType,
    since: textOf(result.since),
  } satisfies StatisticsJson);
}

function textOf(time: Timestamp | undefined): string {
  return time === undefined ? "" : timestampDate(time).toISOString();
}

/** The API message of one query's statistics. */
interface StatisticMessage {
  readonly query: string;
  readonly calls: bigint;
  readonly totalTime: number;
  readonly meanTime: number;
  readonly rows: bigint;
  readonly cacheHitRatio?: number;
  readonly queryId: string;
  readonly database: string;
}

const batchSize = 25;

/** The messages of entries, with queries redacted. Yields to the event loop between batches. */
export async function statisticMessages(
  entries: readonly EngineQueryStatistic[],
  databaseType: string,
): Promise<StatisticMessage[]> {
  const redact = await loadRedaction(databaseType);
  const messages: StatisticMessage[] = [];
  for (const [index, { query, totalMs, meanMs, calls, rows, cacheHitRatio, queryId, database }] of entries.entries()) {
    if (index % batchSize === 0) await breathe();
    messages.push({
      query: redact(query),
      calls,
      totalTime: totalMs,
      meanTime: meanMs,
      rows,
      ...(cacheHitRatio !== undefined && { cacheHitRatio }),
      queryId,
      database,
    });
  }
  return messages;
}
