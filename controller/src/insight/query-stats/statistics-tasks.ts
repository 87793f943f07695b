import { type Timestamp, timestampDate } from "@bufbuild/protobuf/wkt";
import type { ReadQueryStatisticsResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createMachineTasks, type MachineTaskDeps, type MachineTasks } from "#services/service/machine-task-source.ts";
import { statisticMessages } from "./statistics-message.ts";

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
  const queries = await statisticMessages(result.queries);
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
