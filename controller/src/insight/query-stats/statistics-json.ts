import { timestampDate, type Timestamp } from "@bufbuild/protobuf/wkt";
import type { ReadQueryStatisticsResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { statisticMessages } from "./statistics-message.ts";

/** Statistics as the result of a task. */
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

/** What an agent told, as JSON text without literals. */
export async function statisticsJson(result: ReadQueryStatisticsResult): Promise<string> {
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
    database_type: "postgresql",
    since: textOf(result.since),
  } satisfies StatisticsJson);
}

function textOf(time: Timestamp | undefined): string {
  return time === undefined ? "" : timestampDate(time).toISOString();
}
