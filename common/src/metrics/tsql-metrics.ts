import type { Metric } from "./metric.ts";

const tsql = ["tsql"];

/** Metrics of the front end of T-SQL clients; `postgresql-metrics.ts` has those of the engine. */
// biome-ignore format: a table, aligned so that it reads as one
export const tsqlMetrics: readonly Metric[] = [
  { number: 55, name: "tds_connections",                    unit: "count",            engines: tsql,       kind: "gauge", source: "engine",  description: "Sessions of T-SQL clients" },
  { number: 56, name: "tds_batches_per_second",             unit: "per second",       engines: tsql,       kind: "rate",  source: "engine",  description: "Batches and calls of procedures that T-SQL clients sent" },
  { number: 57, name: "tds_errors_per_second",              unit: "per second",       engines: tsql,       kind: "rate",  source: "engine",  description: "Errors that T-SQL clients received, refused sign-ins included" },
  { number: 58, name: "tds_cache_hit_rate",                 unit: "percent",          engines: tsql,       kind: "rate",  source: "engine",  description: "Share of T-SQL texts whose syntax tree was in the front end's cache" },
];
