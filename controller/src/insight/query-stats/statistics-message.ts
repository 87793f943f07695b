import { setImmediate as breathe } from "node:timers/promises";
import type { EngineQueryStatistic } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { loadNormalizer, shownQuery } from "./shown-query.ts";

/** An entry as the API tells it. */
export interface ShownStatistic {
  readonly query: string;
  readonly calls: bigint;
  readonly totalTime: number;
  readonly meanTime: number;
  readonly rows: bigint;
  readonly cacheHitRatio?: number;
  readonly queryId: string;
  readonly database: string;
}

const atOnce = 25;

/** Entries without literals. Others have their turn in between. */
export async function statisticMessages(entries: readonly EngineQueryStatistic[]): Promise<ShownStatistic[]> {
  await loadNormalizer();
  const shown: ShownStatistic[] = [];
  for (const [index, { query, totalMs, meanMs, calls, rows, cacheHitRatio, queryId, database }] of entries.entries()) {
    if (index % atOnce === 0) await breathe();
    shown.push({
      query: shownQuery(query),
      calls,
      totalTime: totalMs,
      meanTime: meanMs,
      rows,
      ...(cacheHitRatio !== undefined && { cacheHitRatio }),
      queryId,
      database,
    });
  }
  return shown;
}
