import type { Metric } from "./metric.ts";

const mongodb = ["mongodb"];

/** Metrics of MongoDB's API. */
// biome-ignore format: a table, aligned so that it reads as one
export const mongodbMetrics: readonly Metric[] = [
  { number: 20, name: "mongodb_ops_per_second",             unit: "per second",       engines: mongodb,    kind: "rate",  source: "engine",  description: "Commands that the front end passed on" },
  { number: 21, name: "mongodb_replication_lag_seconds",    unit: "seconds",          engines: mongodb,    kind: "gauge", source: "engine",  description: "Lag of a replica behind its primary",     nodes: "replicas" },
  { number: 22, name: "mongodb_wiredtiger_cache_used",      unit: "percent",          engines: mongodb,    kind: "gauge", source: "engine",  description: "Used share of the storage engine's cache" },
  { number: 23, name: "mongodb_connections",                unit: "count",            engines: mongodb,    kind: "gauge", source: "engine",  description: "Client connections that are signed in" },
];
