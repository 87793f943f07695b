import { countSessions } from "../front/front-commands.ts";
import type { MetricsFacet } from "../insight-facets.ts";
import { readFigures, readHealth } from "./figures.ts";
import { clientListener, frontOf } from "./front.ts";

const withinMs = 3_000;
const lagReason = "OpenSearch has no replication lag per member; see opensearch_unassigned_shards.";
const statusNumbers = { green: 0, yellow: 1, red: 2 } as const;

/** Metrics of the engine and of the front. The epoch is the start of the process. */
export const metrics: MetricsFacet = {
  async read(instance, signal) {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    const [figures, health, connections] = await Promise.all([
      readFigures(instance, bounded),
      readHealth(instance, bounded),
      countSessions(frontOf(instance), clientListener, bounded),
    ]);
    return {
      gauges: {
        connections,
        opensearch_cluster_status: statusNumbers[health.status],
        opensearch_heap_percent: figures.heapPercent,
        opensearch_unassigned_shards: health.unassignedShards,
      },
      counters: {
        opensearch_docs_indexed_per_second: figures.indexed,
        opensearch_searches_per_second: figures.searches,
      },
      ratios: {},
      epoch: String(figures.startedMs),
      absent: { replication_lag_seconds: lagReason, replication_lag_bytes: lagReason },
    };
  },
};
