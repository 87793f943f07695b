/** One metric of machines or engines. */
export interface Metric {
  /** Number of the metric in samples, from 1 on. Stored samples refer to it, so a number is never reused. */
  readonly slot: number;
  readonly name: string;
  readonly unit: MetricUnit;
  /** Values of database_type that have the metric; empty means all. */
  readonly engines: readonly string[];
  readonly kind: MetricKind;
  readonly description: string;
  /** The component that measures it; null if this version does not collect it. */
  readonly source: MetricSource | null;
  /** The nodes that can have it; absent means all. */
  readonly nodes?: "primary" | "replicas";
}

export type MetricUnit =
  | "percent"
  | "per second"
  | "per minute"
  | "bytes per second"
  | "bytes"
  | "seconds"
  | "count"
  | "level";

/**
 * A gauge is the value at the time of a sample; a rate is the change since the previous sample, divided by the time
 * between them.
 */
export type MetricKind = "gauge" | "rate";

/** The machine of the engine, the engine itself, its queues, or the agent's checks. */
export type MetricSource = "machine" | "engine" | "queues" | "agent";

const every: readonly string[] = [];
const postgresql = ["postgresql"];
const mysql = ["mysql"];
const mongodb = ["mongodb"];
const valkey = ["valkey"];
const kafka = ["kafka"];

/** All metrics, including those of engines that are planned. */
// biome-ignore format: a table, aligned so that it reads as one
export const metricCatalog: readonly Metric[] = [
  { slot: 1,  name: "cpu",                                unit: "percent",          engines: every,      kind: "rate",  source: "machine", description: "CPU time of the machine, as a share of its plan" },
  { slot: 2,  name: "memory",                             unit: "percent",          engines: every,      kind: "gauge", source: "machine", description: "Memory of the machine as a share of its plan: all memory in use except inactive file cache" },
  { slot: 3,  name: "disk",                               unit: "percent",          engines: every,      kind: "gauge", source: "machine", description: "Used share of the requested storage" },
  { slot: 4,  name: "disk_iops",                          unit: "per second",       engines: every,      kind: "rate",  source: "machine", description: "Completed reads and writes of the data disk" },
  { slot: 5,  name: "connections",                        unit: "count",            engines: every,      kind: "gauge", source: "engine",  description: "Open client connections of users" },
  { slot: 6,  name: "network_in",                         unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", description: "Bytes received by the machine's network interface" },
  { slot: 7,  name: "network_out",                        unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", description: "Bytes sent by the machine's network interface" },
  { slot: 8,  name: "replication_lag_seconds",            unit: "seconds",          engines: every,      kind: "gauge", source: "engine",  description: "Lag of a replica behind its primary", nodes: "replicas" },
  { slot: 9,  name: "pg_connections",                     unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Sessions of users, without those of the platform" },
  { slot: 10, name: "pg_transactions_per_second",         unit: "per second",       engines: postgresql, kind: "rate",  source: "engine",  description: "Committed and rolled back transactions in databases of users" },
  { slot: 11, name: "pg_cache_hit_rate",                  unit: "percent",          engines: postgresql, kind: "rate",  source: "engine",  description: "Share of requested blocks found in shared buffers; above 99 is healthy" },
  { slot: 12, name: "pg_replication_lag_seconds",         unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the last transaction that a replica has replayed; 0 if it is caught up", nodes: "replicas" },
  { slot: 13, name: "pg_locks",                           unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Locks that are granted or waited for, without those of the platform" },
  { slot: 14, name: "pg_deadlocks",                       unit: "per minute",       engines: postgresql, kind: "rate",  source: "engine",  description: "Deadlocks that PostgreSQL detected" },
  { slot: 15, name: "pg_slow_queries",                    unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  description: "Queries of users that have been running for more than a second" },
  { slot: 16, name: "mysql_queries_per_second",           unit: "per second",       engines: mysql,      kind: "rate",  source: null,      description: "Executed statements" },
  { slot: 17, name: "mysql_innodb_buffer_pool_hit_rate",  unit: "percent",          engines: mysql,      kind: "rate",  source: null,      description: "Share of requested pages found in the buffer pool" },
  { slot: 18, name: "mysql_replication_lag_seconds",      unit: "seconds",          engines: mysql,      kind: "gauge", source: null,      description: "Lag of a replica behind its primary", nodes: "replicas" },
  { slot: 19, name: "mysql_open_files",                   unit: "count",            engines: mysql,      kind: "gauge", source: null,      description: "Open files of the server" },
  { slot: 20, name: "mongodb_ops_per_second",             unit: "per second",       engines: mongodb,    kind: "rate",  source: null,      description: "Executed operations" },
  { slot: 21, name: "mongodb_replication_lag_seconds",    unit: "seconds",          engines: mongodb,    kind: "gauge", source: null,      description: "Lag of a secondary behind its primary",     nodes: "replicas" },
  { slot: 22, name: "mongodb_wiredtiger_cache_used",      unit: "percent",          engines: mongodb,    kind: "gauge", source: null,      description: "Used share of the storage engine's cache" },
  { slot: 23, name: "mongodb_connections",                unit: "count",            engines: mongodb,    kind: "gauge", source: null,      description: "Client connections that are open" },
  { slot: 24, name: "valkey_used_memory",                 unit: "bytes",            engines: valkey,     kind: "gauge", source: "engine",  description: "Memory allocated by valkey" },
  { slot: 25, name: "valkey_keyspace_hits",               unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Lookups of existing keys" },
  { slot: 26, name: "valkey_keyspace_misses",             unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Lookups of absent keys" },
  { slot: 27, name: "valkey_evicted_keys",                unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Keys evicted because of the memory limit" },
  { slot: 28, name: "valkey_connected_clients",           unit: "count",            engines: valkey,     kind: "gauge", source: "engine",  description: "Client connections that are open" },
  { slot: 29, name: "kafka_messages_in_per_sec",          unit: "per second",       engines: kafka,      kind: "rate",  source: null,      description: "Messages received by brokers" },
  { slot: 30, name: "kafka_bytes_in_per_sec",             unit: "bytes per second", engines: kafka,      kind: "rate",  source: null,      description: "Bytes of messages received by brokers" },
  { slot: 31, name: "kafka_bytes_out_per_sec",            unit: "bytes per second", engines: kafka,      kind: "rate",  source: null,      description: "Bytes of messages sent by brokers" },
  { slot: 32, name: "kafka_under_replicated_partitions",  unit: "count",            engines: kafka,      kind: "gauge", source: null,      description: "Partitions with fewer in-sync replicas than configured; 0 is healthy" },
  { slot: 33, name: "kafka_consumer_lag",                 unit: "count",            engines: kafka,      kind: "gauge", source: null,      description: "Messages that the slowest consumer group has not consumed yet" },
  { slot: 34, name: "health",                             unit: "level",            engines: every,      kind: "gauge", source: "agent",   description: "0 healthy, 1 degraded, 2 unhealthy, by the agent's checks; no value while the agent is silent or the engine is stopped" },
  { slot: 35, name: "pg_oldest_transaction_seconds",      unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the oldest open or prepared transaction; 0 if there is none" },
  { slot: 36, name: "pg_xid_age_percent",                 unit: "percent",          engines: postgresql, kind: "gauge", source: "engine",  description: "Age of the oldest transaction id or multixact id, as a share of the ids before wraparound" },
  { slot: 37, name: "queue_ready_messages",               unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Claimable messages in all queues of the service; estimated above 10,000" },
  { slot: 38, name: "queue_inflight_messages",            unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Claimed messages in all queues of the service; estimated above 10,000" },
  { slot: 39, name: "queue_dead_messages",                unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Dead messages in all queues of the service; estimated above 10,000" },
  { slot: 40, name: "queue_oldest_age_seconds",           unit: "seconds",          engines: postgresql, kind: "gauge", source: "queues",  description: "Age of the oldest claimable message; 0 if there is none" },
  { slot: 41, name: "restorable_age_seconds",             unit: "seconds",          engines: postgresql, kind: "gauge", source: "agent",   description: "Age of the recovery point: the newest time whose log is durable in the object store", nodes: "primary" },
  { slot: 42, name: "archive_waiting_bytes",              unit: "bytes",            engines: postgresql, kind: "gauge", source: "agent",   description: "Log that is not in the object store yet and is retained by the engine", nodes: "primary" },
  { slot: 43, name: "replication_lag_bytes",              unit: "bytes",            engines: every,      kind: "gauge", source: "engine",  description: "Log of the primary that a replica has not replayed yet", nodes: "replicas" },
];

const byName = new Map(metricCatalog.map((metric) => [metric.name, metric]));

/** The metric of this name; undefined if the catalog lacks it. */
export function metricOf(name: string): Metric | undefined {
  return byName.get(name);
}

/** True if services of this engine can have the metric. */
export function appliesToEngine({ engines }: Metric, engine: string): boolean {
  return engines.length === 0 || engines.includes(engine);
}
