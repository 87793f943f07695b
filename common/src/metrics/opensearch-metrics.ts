import type { Metric } from "./metric.ts";

const opensearch = ["opensearch"];

/** Metrics of OpenSearch. */
// biome-ignore format: a table, aligned so that it reads as one
export const opensearchMetrics: readonly Metric[] = [
  { number: 50, name: "opensearch_cluster_status",           unit: "level",            engines: opensearch, kind: "gauge", source: "engine",  description: "Health of the cluster: 0 green, 1 yellow, 2 red" },
  { number: 51, name: "opensearch_docs_indexed_per_second",  unit: "per second",       engines: opensearch, kind: "rate",  source: "engine",  description: "Documents that members indexed, copies included" },
  { number: 52, name: "opensearch_searches_per_second",      unit: "per second",       engines: opensearch, kind: "rate",  source: "engine",  description: "Searches of shards" },
  { number: 53, name: "opensearch_heap_percent",             unit: "percent",          engines: opensearch, kind: "gauge", source: "engine",  description: "Used share of the engine's heap" },
  { number: 54, name: "opensearch_unassigned_shards",        unit: "count",            engines: opensearch, kind: "gauge", source: "engine",  description: "Copies of shards that no member has" },
];
