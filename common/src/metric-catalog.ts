/** One figure that the platform knows of machines and engines. */
export interface Metric {
  /** Where its value stands in a sample, from 1 on. Samples of years name it so: never used for another one. */
  readonly slot: number;
  readonly name: string;
  readonly unit: MetricUnit;
  /** Values of database_type that have it; empty means all. */
  readonly engines: readonly string[];
  readonly kind: MetricKind;
  readonly meaning: string;
  /** Who tells it; null for one that this version does not collect yet. */
  readonly source: MetricSource | null;
  /** Which nodes of a service can have it; absent means any. */
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

/** A gauge is what is at the time of a sample; a rate is what came since the sample before, by its time. */
export type MetricKind = "gauge" | "rate";

/** The machine that the engine runs on, the engine itself, the queues inside it, or the agent that checks them. */
export type MetricSource = "machine" | "engine" | "queues" | "agent";

const every: readonly string[] = [];
const postgresql = ["postgresql"];
const mysql = ["mysql"];
const mongodb = ["mongodb"];
const valkey = ["valkey"];
const kafka = ["kafka"];

/** Every metric there is a name for, also of engines that are still to come. */
// biome-ignore format: a table, aligned so that it reads as one
export const metricCatalog: readonly Metric[] = [
  { slot: 1,  name: "cpu",                                unit: "percent",          engines: every,      kind: "rate",  source: "machine", meaning: "CPU time that the machine used, of what its plan gives it" },
  { slot: 2,  name: "memory",                             unit: "percent",          engines: every,      kind: "gauge", source: "machine", meaning: "Memory that the machine needs, of its plan's: all in use but file cache that was not used for a while" },
  { slot: 3,  name: "disk",                               unit: "percent",          engines: every,      kind: "gauge", source: "machine", meaning: "How full the storage is that was asked for" },
  { slot: 4,  name: "disk_iops",                          unit: "per second",       engines: every,      kind: "rate",  source: "machine", meaning: "Reads and writes that the data disk completed" },
  { slot: 5,  name: "connections",                        unit: "count",            engines: every,      kind: "gauge", source: "engine",  meaning: "Client connections of users that are open" },
  { slot: 6,  name: "network_in",                         unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", meaning: "Bytes that the machine's network interface received" },
  { slot: 7,  name: "network_out",                        unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", meaning: "Bytes that the machine's network interface sent" },
  { slot: 8,  name: "replication_lag_seconds",            unit: "seconds",          engines: every,      kind: "gauge", source: "engine",  meaning: "How far a replica is behind its primary", nodes: "replicas" },
  { slot: 9,  name: "pg_connections",                     unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  meaning: "Sessions of users, without those of the platform" },
  { slot: 10, name: "pg_transactions_per_second",         unit: "per second",       engines: postgresql, kind: "rate",  source: "engine",  meaning: "Transactions that ended in databases of users, committed or rolled back" },
  { slot: 11, name: "pg_cache_hit_rate",                  unit: "percent",          engines: postgresql, kind: "rate",  source: "engine",  meaning: "Blocks found in shared buffers, of those asked for; above 99 is well" },
  { slot: 12, name: "pg_replication_lag_seconds",         unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  meaning: "Age of the last transaction that a replica has replayed; 0 when it lacks none", nodes: "replicas" },
  { slot: 13, name: "pg_locks",                           unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  meaning: "Locks that are held or waited for, without those of the platform" },
  { slot: 14, name: "pg_deadlocks",                       unit: "per minute",       engines: postgresql, kind: "rate",  source: "engine",  meaning: "Deadlocks that PostgreSQL broke" },
  { slot: 15, name: "pg_slow_queries",                    unit: "count",            engines: postgresql, kind: "gauge", source: "engine",  meaning: "Queries of users that run for over a second now" },
  { slot: 16, name: "mysql_queries_per_second",           unit: "per second",       engines: mysql,      kind: "rate",  source: null,      meaning: "Statements that the server executed" },
  { slot: 17, name: "mysql_innodb_buffer_pool_hit_rate",  unit: "percent",          engines: mysql,      kind: "rate",  source: null,      meaning: "Pages found in the buffer pool, of those asked for" },
  { slot: 18, name: "mysql_replication_lag_seconds",      unit: "seconds",          engines: mysql,      kind: "gauge", source: null,      meaning: "How far a replica is behind its primary", nodes: "replicas" },
  { slot: 19, name: "mysql_open_files",                   unit: "count",            engines: mysql,      kind: "gauge", source: null,      meaning: "Files that the server has open" },
  { slot: 20, name: "mongodb_ops_per_second",             unit: "per second",       engines: mongodb,    kind: "rate",  source: null,      meaning: "Operations that the server executed" },
  { slot: 21, name: "mongodb_replication_lag_seconds",    unit: "seconds",          engines: mongodb,    kind: "gauge", source: null,      meaning: "How far a secondary is behind its primary", nodes: "replicas" },
  { slot: 22, name: "mongodb_wiredtiger_cache_used",      unit: "percent",          engines: mongodb,    kind: "gauge", source: null,      meaning: "How full the storage engine's cache is" },
  { slot: 23, name: "mongodb_connections",                unit: "count",            engines: mongodb,    kind: "gauge", source: null,      meaning: "Client connections that are open" },
  { slot: 24, name: "valkey_used_memory",                 unit: "bytes",            engines: valkey,     kind: "gauge", source: "engine",  meaning: "Memory that valkey has allocated" },
  { slot: 25, name: "valkey_keyspace_hits",               unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  meaning: "Look-ups of keys that were there" },
  { slot: 26, name: "valkey_keyspace_misses",             unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  meaning: "Look-ups of keys that were not there" },
  { slot: 27, name: "valkey_evicted_keys",                unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  meaning: "Keys that were removed for want of memory" },
  { slot: 28, name: "valkey_connected_clients",           unit: "count",            engines: valkey,     kind: "gauge", source: "engine",  meaning: "Client connections that are open" },
  { slot: 29, name: "kafka_messages_in_per_sec",          unit: "per second",       engines: kafka,      kind: "rate",  source: null,      meaning: "Messages that brokers took" },
  { slot: 30, name: "kafka_bytes_in_per_sec",             unit: "bytes per second", engines: kafka,      kind: "rate",  source: null,      meaning: "Bytes of messages that brokers took" },
  { slot: 31, name: "kafka_bytes_out_per_sec",            unit: "bytes per second", engines: kafka,      kind: "rate",  source: null,      meaning: "Bytes of messages that brokers gave" },
  { slot: 32, name: "kafka_under_replicated_partitions",  unit: "count",            engines: kafka,      kind: "gauge", source: null,      meaning: "Partitions with fewer replicas in step than asked for; 0 is well" },
  { slot: 33, name: "kafka_consumer_lag",                 unit: "count",            engines: kafka,      kind: "gauge", source: null,      meaning: "Messages that the slowest consumer group has not taken yet" },
  { slot: 34, name: "health",                             unit: "level",            engines: every,      kind: "gauge", source: "agent",   meaning: "0 healthy, 1 degraded, 2 unhealthy, by the checks of the agent; none while it is silent or the engine is off" },
  { slot: 35, name: "pg_oldest_transaction_seconds",      unit: "seconds",          engines: postgresql, kind: "gauge", source: "engine",  meaning: "Age of the oldest transaction that is open or prepared; 0 without one" },
  { slot: 36, name: "pg_xid_age_percent",                 unit: "percent",          engines: postgresql, kind: "gauge", source: "engine",  meaning: "Age of the oldest transaction id or multixact id, of those that there are before they wrap around" },
  { slot: 37, name: "queue_ready_messages",               unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  meaning: "Messages that can be claimed, of all queues of the service; over 10,000 an estimate" },
  { slot: 38, name: "queue_inflight_messages",            unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  meaning: "Messages that are claimed and hidden, of all queues of the service; over 10,000 an estimate" },
  { slot: 39, name: "queue_dead_messages",                unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  meaning: "Dead messages of all queues of the service; over 10,000 an estimate" },
  { slot: 40, name: "queue_oldest_age_seconds",           unit: "seconds",          engines: postgresql, kind: "gauge", source: "queues",  meaning: "Age of the oldest message that can be claimed; 0 without one" },
  { slot: 41, name: "restorable_age_seconds",             unit: "seconds",          engines: postgresql, kind: "gauge", source: "agent",   meaning: "Age of the newest moment whose log is durable in the object store", nodes: "primary" },
  { slot: 42, name: "archive_waiting_bytes",              unit: "bytes",            engines: postgresql, kind: "gauge", source: "agent",   meaning: "Log that the engine keeps since it is not in the object store yet", nodes: "primary" },
  { slot: 43, name: "replication_lag_bytes",              unit: "bytes",            engines: every,      kind: "gauge", source: "engine",  meaning: "Log of the primary that a replica has not replayed yet", nodes: "replicas" },
];

const byName = new Map(metricCatalog.map((metric) => [metric.name, metric]));

/** Undefined for a name outside of the catalog. */
export function metricOf(name: string): Metric | undefined {
  return byName.get(name);
}

/** Can a service of this engine have it? */
export function isOfEngine({ engines }: Metric, engine: string): boolean {
  return engines.length === 0 || engines.includes(engine);
}
