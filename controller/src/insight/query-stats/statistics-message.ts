import { setImmediate as breathe } from "node:timers/promises";
import type { EngineQueryStatistic } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { loadNormalizer, redactQuery } from "./redact-query.ts";

/** The API message of one query's statistics. */
export interface StatisticMessage {
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
export async function statisticMessages(entries: readonly EngineQueryStatistic[]): Promise<StatisticMessage[]> {
  await loadNormalizer();
  const messages: StatisticMessage[] = [];
  for (const [index, { query, totalMs, meanMs, calls, rows, cacheHitRatio, queryId, database }] of entries.entries()) {
    if (index % batchSize === 0) await breathe();
    messages.push({
      query: redactQuery(query),
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
