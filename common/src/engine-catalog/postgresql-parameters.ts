import { type Parameter, type ParameterLimits as Limits, parameterOf as live } from "./parameter.ts";

/** A parameter that takes effect at the engine's start. */
function atStart(...row: Parameters<typeof live>): Parameter {
  return { ...live(...row), needsRestart: true };
}

/**
 * Lower bound of transaction_timeout. A session starts with a transaction, to which the value in postgresql.conf always
 * applies: with a lower value nobody could connect.
 */
export const minTransactionMs = 1_000;

const int = 2_147_483_647;
const kB = (minimum: number, maximum = int): Limits => ({ unit: "kB", minimum, maximum });
const pages = (minimum: number, maximum: number): Limits => ({ unit: "8kB", minimum, maximum });
const MB = (minimum: number, maximum = int): Limits => ({ unit: "MB", minimum, maximum });
const ms = (minimum: number, maximum = int): Limits => ({ unit: "ms", minimum, maximum });
const s = (minimum: number, maximum: number): Limits => ({ unit: "s", minimum, maximum });
const from = (minimum: number, maximum: number): Limits => ({ minimum, maximum });
const oneOf = (...values: string[]): Limits => ({ values });
const cost = from(0, 1.79769e308);

// biome-ignore format: a table, aligned so that it reads as one
export const postgresqlParameters: readonly Parameter[] = [
  // Connections
  atStart("max_connections",                     "integer",  null,    from(10, 10_000),   "Maximum number of sessions, including those of the platform"),
  live("idle_session_timeout",                   "duration", "0",     ms(0),              "Ends a session after this idle time; 0 disables it"),
  live("idle_in_transaction_session_timeout",    "duration", "0",     ms(0),              "Ends a session after this idle time inside a transaction; 0 disables it"),
  live("statement_timeout",                      "duration", "0",     ms(0),              "Cancels a statement after this time; 0 disables it"),
  live("transaction_timeout",                    "duration", "0",     { ...ms(0), minimumEnabled: minTransactionMs, versions: ["17", "18"] }, "Ends a session whose transaction lasts this long, at least 1 s; 0 disables it"),
  live("lock_timeout",                           "duration", "0",     ms(0),              "Cancels a statement that waits this long for a lock; 0 disables it"),
  live("deadlock_timeout",                       "duration", "1s",    ms(1),              "Time to wait for a lock before checking for a deadlock"),
  live("client_connection_check_interval",       "duration", "0",     ms(0),              "Interval of checks for a disconnected client of a running query; 0 disables them"),
  atStart("max_locks_per_transaction",           "integer",  "64",    from(10, 100_000),  "Average number of locks per transaction"),
  atStart("max_pred_locks_per_transaction",      "integer",  "64",    from(10, 100_000),  "Average number of predicate locks per serializable transaction"),
  atStart("max_prepared_transactions",           "integer",  "0",     from(0, 10_000),    "Maximum number of prepared transactions (two-phase commit)"),

  // Memory
  atStart("shared_buffers",                      "bytes",    null,    pages(16, 1_073_741_823), "Memory for cached pages"),
  live("effective_cache_size",                   "bytes",    null,    pages(1, int),      "Planner's estimate of memory for cached pages, including the kernel's"),
  live("work_mem",                               "bytes",    null,    kB(64),             "Memory for each sort or hash of a query"),
  live("hash_mem_multiplier",                    "real",     "2",     from(1, 1_000),     "Memory for a hash, as a multiple of work_mem"),
  live("maintenance_work_mem",                   "bytes",    null,    kB(64),             "Memory for maintenance commands such as VACUUM and CREATE INDEX"),
  live("autovacuum_work_mem",                    "bytes",    "-1",    { ...kB(-1), minimumEnabled: 64 }, "Memory for each autovacuum worker; -1 uses maintenance_work_mem"),
  live("logical_decoding_work_mem",              "bytes",    "64MB",  kB(64),             "Memory for each logical decoding before it spills to disk"),
  live("temp_buffers",                           "bytes",    "8MB",   pages(100, 1_073_741_823), "Memory for temporary tables of a session"),
  live("temp_file_limit",                        "bytes",    "-1",    kB(-1),             "Maximum space of a session's temporary files; -1 is unlimited"),
  live("gin_pending_list_limit",                 "bytes",    "4MB",   kB(64),             "Size of the list of pending entries of a GIN index"),
  live("vacuum_buffer_usage_limit",              "bytes",    "2MB",   { ...kB(0, 16_777_216), minimumEnabled: 128, versions: ["17", "18"] },  "Memory for pages that VACUUM and ANALYZE read"),

  // Parallel work
  atStart("max_worker_processes",                "integer",  null,    from(8, 1_024),     "Maximum number of background processes"),
  live("max_parallel_workers",                   "integer",  null,    from(0, 1_024),     "Maximum number of workers of all parallel queries"),
  live("max_parallel_workers_per_gather",        "integer",  null,    from(0, 1_024),     "Maximum number of workers of one parallel query"),
  live("max_parallel_maintenance_workers",       "integer",  null,    from(0, 1_024),     "Maximum number of workers of one CREATE INDEX or VACUUM"),
  live("parallel_setup_cost",                    "real",     "1000",  cost,               "Planner's cost to start parallel workers"),
  live("parallel_tuple_cost",                    "real",     "0.1",   cost,               "Planner's cost to transfer a row from a worker"),
  live("min_parallel_table_scan_size",           "bytes",    "8MB",   pages(0, 715_827_882), "Least table size that is scanned in parallel"),
  live("min_parallel_index_scan_size",           "bytes",    "512kB", pages(0, 715_827_882), "Least index size that is scanned in parallel"),

  // Planner
  live("random_page_cost",                       "real",     "1.1",   cost,               "Planner's cost to read a page out of order"),
  live("seq_page_cost",                          "real",     "1",     cost,               "Planner's cost to read the next page"),
  live("cpu_tuple_cost",                         "real",     "0.01",  cost,               "Planner's cost to process a row"),
  live("cpu_index_tuple_cost",                   "real",     "0.005", cost,               "Planner's cost to process an index entry"),
  live("cpu_operator_cost",                      "real",     "0.0025", cost,              "Planner's cost to process an operator"),
  live("default_statistics_target",              "integer",  "100",   from(1, 10_000),    "Detail of the statistics that ANALYZE collects"),
  live("constraint_exclusion",                   "enum",     "partition", oneOf("partition", "on", "off"), "Uses constraints to skip tables"),
  live("plan_cache_mode",                        "enum",     "auto",  oneOf("auto", "force_generic_plan", "force_custom_plan"), "Plan of a prepared statement"),
  live("from_collapse_limit",                    "integer",  "8",     from(1, int),       "Subqueries that are merged into their query"),
  live("join_collapse_limit",                    "integer",  "8",     from(1, int),       "Joins whose order the planner chooses"),
  live("jit",                                    "boolean",  "off",   {},                 "Compiles expressions of expensive queries"),
  live("enable_partitionwise_join",              "boolean",  "off",   {},                 "Joins partition by partition"),
  live("enable_partitionwise_aggregate",         "boolean",  "off",   {},                 "Aggregates partition by partition"),
  live("effective_io_concurrency",               "integer",  "200",   from(0, 1_000),     "Concurrent reads of a session"),
  live("maintenance_io_concurrency",             "integer",  "200",   from(0, 1_000),     "Concurrent reads of a maintenance command"),

  // Write-ahead log
  live("max_wal_size",                           "bytes",    null,    MB(64),             "Size of the write-ahead log that triggers a checkpoint"),
  live("min_wal_size",                           "bytes",    null,    MB(32),             "Size of the write-ahead log that is recycled for reuse"),
  live("checkpoint_timeout",                     "duration", "15min", s(30, 86_400),      "Longest time between checkpoints"),
  live("checkpoint_completion_target",           "real",     "0.9",   from(0, 1),         "Share of the time between checkpoints that writing takes"),
  live("wal_compression",                        "enum",     "lz4",   oneOf("off", "on", "pglz", "lz4", "zstd"), "Compresses whole pages in the log"),
  live("wal_writer_delay",                       "duration", "200ms", ms(1, 10_000),      "Interval of the WAL writer"),
  live("commit_delay",                           "integer",  "0",     from(0, 100_000),   "Microseconds that a commit waits for others to share its flush"),
  live("commit_siblings",                        "integer",  "5",     from(0, 1_000),     "Minimum number of open transactions for commit_delay"),
  atStart("wal_level",                           "enum",     "replica", oneOf("replica", "logical"), "Content of the log; logical adds information for logical decoding"),
  live("synchronous_commit",                     "enum",     "on",    oneOf("on", "off", "local", "remote_write", "remote_apply"), "Durability that a commit waits for; off can lose the last commits in a crash"),
  atStart("track_commit_timestamp",              "boolean",  "off",   {},                 "Records the time of each commit"),
  live("bgwriter_delay",                         "duration", "200ms", ms(10, 10_000),     "Interval of the background writer"),
  live("bgwriter_lru_maxpages",                  "integer",  "100",   from(0, 1_073_741_823), "Maximum number of pages per round of the background writer"),
  live("bgwriter_lru_multiplier",                "real",     "2",     from(0, 10),        "Pages written ahead, as a multiple of recent demand"),

  // Vacuum
  live("autovacuum_naptime",                     "duration", "1min",  s(1, 2_147_483),    "Interval of checks for tables to vacuum"),
  live("autovacuum_vacuum_threshold",            "integer",  "50",    from(0, int),       "Number of dead rows that triggers a vacuum"),
  live("autovacuum_vacuum_scale_factor",         "real",     "0.2",   from(0, 100),       "Share of the table's rows added to the threshold"),
  live("autovacuum_vacuum_insert_threshold",     "integer",  "1000",  from(-1, int),      "Number of inserted rows that triggers a vacuum; -1 disables it"),
  live("autovacuum_vacuum_insert_scale_factor",  "real",     "0.2",   from(0, 100),       "Share of the table's rows added to the threshold for inserts"),
  live("autovacuum_analyze_threshold",           "integer",  "50",    from(0, int),       "Number of changed rows that triggers an analyze"),
  live("autovacuum_analyze_scale_factor",        "real",     "0.1",   from(0, 100),       "Share of the table's rows added to the threshold for analyze"),
  live("autovacuum_vacuum_cost_delay",           "duration", "2ms",   ms(-1, 100),        "Pause of autovacuum when its cost limit is reached"),
  live("autovacuum_vacuum_cost_limit",           "integer",  "-1",    from(-1, 10_000),   "Cost at which autovacuum pauses; -1 uses vacuum_cost_limit"),
  live("vacuum_cost_limit",                      "integer",  "200",   from(1, 10_000),    "Cost at which VACUUM pauses"),
  atStart("autovacuum_freeze_max_age",           "integer",  "200000000", from(100_000, 2_000_000_000), "Age in transactions that forces a vacuum"),
  live("vacuum_freeze_min_age",                  "integer",  "50000000",  from(0, 1_000_000_000), "Age in transactions at which rows are frozen"),
  live("vacuum_freeze_table_age",                "integer",  "150000000", from(0, 2_000_000_000), "Age in transactions at which a complete table is frozen"),

  // Sessions' defaults
  live("default_transaction_isolation",          "enum",     "read committed", oneOf("read committed", "repeatable read", "serializable", "read uncommitted"), "Isolation of new transactions"),
  live("default_toast_compression",              "enum",     "pglz",  oneOf("pglz", "lz4"), "Compression of long values"),
  live("bytea_output",                           "enum",     "hex",   oneOf("hex", "escape"), "Output format of bytea"),
  live("IntervalStyle",                          "enum",     "postgres", oneOf("postgres", "postgres_verbose", "sql_standard", "iso_8601"), "Output format of intervals"),
  live("TimeZone",                               "text",     "UTC",   { pattern: /^[A-Za-z][A-Za-z0-9_+-]*(\/[A-Za-z0-9_+-]+)*$/ }, "A time zone such as Europe/Berlin"),

  // Statistics
  live("track_functions",                        "enum",     "none",  oneOf("none", "pl", "all"), "Counts calls of functions"),
  live("track_io_timing",                        "boolean",  "on",    {},                 "Measures the time of reads and writes"),
  atStart("track_activity_query_size",           "bytes",    "1kB",   { unit: "B", minimum: 100, maximum: 1_048_576 }, "Visible bytes of a running query"),
  live("pg_stat_statements.track",               "enum",     "top",   oneOf("none", "top", "all"), "Statements that are counted"),
  atStart("pg_stat_statements.max",              "integer",  "5000",  from(100, 100_000), "Maximum number of tracked statements"),

  // Slow queries: unlike log_min_duration_statement, auto_explain never logs a statement that sets a password.
  live("auto_explain.log_min_duration",          "duration", "-1",    ms(-1),             "Logs the plan of queries that take at least this long; -1 disables it"),
  live("auto_explain.log_analyze",               "boolean",  "off",   {},                 "Logs actual times in these plans; slows all queries down"),
  live("auto_explain.sample_rate",               "real",     "1",     from(0, 1),         "Share of queries that are sampled"),
];

/** Parameters that the platform manages: changing them would break its guarantees. */
export const postgresqlManaged: readonly RegExp[] = [
  /^(ssl|archive|restore|recovery|primary|wal_buffers|synchronous_standby|synchronized_standby|log_|logging|hba|ident|krb|gss|unix_socket|tcp_)/,
  /^(lc_|jit_provider|session_preload|local_preload|shared_preload|allow_|cluster_name|event_source|syslog)/,
  /(_file|_directory|_library|_libraries|_directories)$/,
  /^(listen_addresses|port|data_directory|config_file|password_encryption|fsync|full_page_writes|autovacuum)$/,
  /^(max_wal_senders|max_replication_slots|max_slot_wal_keep_size|wal_keep_size|hot_standby|wal_sync_method|wal_log_hints)$/,
  /^(superuser_reserved_connections|reserved_connections|authentication_timeout|huge_pages|role|search_path)$/,
  /^(row_security|event_triggers|session_replication_role|scram_iterations|md5_password_warnings|data_checksums)$/,
];
