import type { Metric } from "./metric.ts";

const postgresql = ["postgresql", "tsql"];

/** Metrics of PostgreSQL. */
// biome-ignore format: a table, aligned so that it reads as one
export const postgresqlMetrics: readonly Metric[] = [
  { number: 9,  name: "pg_connections",                     unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Sessions of users, without those of the platform" },
  { number: 10, name: "pg_transactions_per_second",         unit: "per second",       engines: postgresql, kind: "rate",  source: "engine",  description: "Committed and rolled back transactions in databases of users" },
  { number: 11, name: "pg_cache_hit_rate",                  unit: "percent",          engines: postgresql, kind: "rate",  source: "engine",  description: "Share of requested blocks found in shared buffers; above 99 is healthy" },
  { number: 12, name: "pg_replication_lag_seconds",         unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the last transaction that a replica has replayed; 0 if it is caught up", nodes: "replicas" },
  { number: 13, name: "pg_locks",                           unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Locks that are granted or waited for, without those of the platform" },
  { number: 14, name: "pg_deadlocks",                       unit: "per minute",       engines: postgresql, kind: "rate",  source: "engine",  description: "Deadlocks that PostgreSQL detected" },
  { number: 15, name: "pg_slow_queries",                    unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Queries of users that have been running for more than a second" },
  { number: 35, name: "pg_oldest_transaction_seconds",      unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the oldest open or prepared transaction; 0 if there is none" },
  { number: 36, name: "pg_xid_age_percent",                 unit: "percent",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the oldest transaction id or multixact id, as a share of the ids before wraparound" },
];
