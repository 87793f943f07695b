import type { Metric } from "./metric.ts";

const mysql = ["mysql"];

/** Metrics of MySQL. */
// biome-ignore format: a table, aligned so that it reads as one
export const mysqlMetrics: readonly Metric[] = [
  { number: 16, name: "mysql_queries_per_second",           unit: "per second",       engines: mysql,      kind: "rate",  source: "engine",  description: "Executed statements" },
  { number: 17, name: "mysql_innodb_buffer_pool_hit_rate",  unit: "percent",          engines: mysql,      kind: "rate",  source: "engine",  description: "Share of requested pages found in the buffer pool" },
  { number: 18, name: "mysql_replication_lag_seconds",      unit: "seconds",          engines: mysql,      kind: "gauge", source: "engine",  description: "Lag of a replica behind its primary", nodes: "replicas" },
  { number: 19, name: "mysql_open_files",                   unit: "count",            engines: mysql,      kind: "gauge", source: "engine",  description: "Open files of the server" },
];
