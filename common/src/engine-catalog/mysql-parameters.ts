import { type Parameter, type ParameterLimits as Limits, parameterOf as live } from "./parameter.ts";

/** A parameter that takes effect at the engine's start. */
function atStart(...row: Parameters<typeof live>): Parameter {
  return { ...live(...row), needsRestart: true };
}

const uint = 4_294_967_295;
const kib = 1024;
const mib = 1024 ** 2;
const gib = 1024 ** 3;
const from = (minimum: number, maximum: number): Limits => ({ minimum, maximum });
const bytes = (minimum: number, maximum: number): Limits => ({ unit: "byte", minimum, maximum });
const oneOf = (...values: string[]): Limits => ({ values });
const onOff: Limits = { values: ["ON", "OFF"] };
const sqlModes =
  "ALLOW_INVALID_DATES|ANSI_QUOTES|ERROR_FOR_DIVISION_BY_ZERO|HIGH_NOT_PRECEDENCE|IGNORE_SPACE|NO_AUTO_VALUE_ON_ZERO|NO_BACKSLASH_ESCAPES|NO_DIR_IN_CREATE|NO_ENGINE_SUBSTITUTION|NO_UNSIGNED_SUBTRACTION|NO_ZERO_DATE|NO_ZERO_IN_DATE|ONLY_FULL_GROUP_BY|PAD_CHAR_TO_FULL_LENGTH|PIPES_AS_CONCAT|REAL_AS_FLOAT|STRICT_ALL_TABLES|STRICT_TRANS_TABLES|TIME_TRUNCATE_FRACTIONAL";
const defaultMode =
  "ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION";

// biome-ignore format: a table, aligned so that it reads as one
export const mysqlParameters: readonly Parameter[] = [
  // Connections
  atStart("max_connections",                    "integer", null,       from(10, 10_000),       "Maximum number of users' sessions"),
  live("max_user_connections",                  "integer", "0",        from(0, uint),          "Maximum number of sessions of one account; 0 disables the limit"),
  live("max_connect_errors",                    "integer", "1000000",  from(1, uint),          "Number of failed handshakes after which a host is refused"),
  live("connect_timeout",                       "integer", "10",       from(2, 3_600),         "Seconds in which a client must sign in"),
  live("wait_timeout",                          "integer", "28800",    from(1, 31_536_000),    "Seconds after which an idle session ends"),
  live("interactive_timeout",                   "integer", "28800",    from(1, 31_536_000),    "Seconds after which an idle interactive session ends"),
  live("net_read_timeout",                      "integer", "30",       from(1, 31_536_000),    "Seconds to wait for more data of a client"),
  live("net_write_timeout",                     "integer", "60",       from(1, 31_536_000),    "Seconds to wait until a client takes data"),
  live("max_allowed_packet",                    "bytes",   "67108864", bytes(2_097_152, gib),  "Maximum size of a statement, row or parameter; replicas are copied with at least 2 MiB"),
  live("max_execution_time",                    "integer", "0",        from(0, uint),          "Milliseconds after which a SELECT is canceled; 0 disables the limit"),
  live("thread_cache_size",                     "integer", "16",       from(0, 16_384),        "Number of threads to keep for later sessions"),

  // Statements
  live("sql_mode",                              "text",    defaultMode, { pattern: new RegExp(`^((${sqlModes})(,(${sqlModes}))*)?$`) }, "Names of SQL modes, separated by commas"),
  live("sql_require_primary_key",               "boolean", "OFF",      onOff,                  "Refuses tables without a primary key"),
  live("time_zone",                             "text",    "+00:00",   { pattern: /^[+-](0\d|1[0-4]):[0-5]\d$/ }, "An offset from UTC such as +02:00"),
  live("default_week_format",                   "integer", "0",        from(0, 7),             "Default mode of WEEK()"),
  live("div_precision_increment",               "integer", "4",        from(0, 30),            "Digits that a division adds"),
  live("group_concat_max_len",                  "integer", "1024",     from(4, uint),          "Maximum bytes of GROUP_CONCAT()"),
  live("cte_max_recursion_depth",               "integer", "1000",     from(0, uint),          "Maximum iterations of a recursive query"),
  live("max_sp_recursion_depth",                "integer", "0",        from(0, 255),           "Maximum depth of recursive procedures"),
  live("max_prepared_stmt_count",               "integer", "16382",    from(0, 4_194_304),     "Maximum number of prepared statements"),
  live("auto_increment_increment",              "integer", "1",        from(1, 65_535),        "Distance of generated numbers"),
  live("auto_increment_offset",                 "integer", "1",        from(1, 65_535),        "First generated number"),
  live("event_scheduler",                       "enum",    "ON",       oneOf("ON", "OFF"),     "Runs scheduled events"),
  live("collation_server",                      "enum",    "utf8mb4_0900_ai_ci", oneOf("utf8mb4_0900_ai_ci", "utf8mb4_0900_as_ci", "utf8mb4_0900_as_cs", "utf8mb4_0900_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_bin"), "Collation of new databases"),
  live("explicit_defaults_for_timestamp",       "boolean", "ON",       onOff,                  "Gives TIMESTAMP columns no implicit defaults"),
  live("transaction_isolation",                 "enum",    "REPEATABLE-READ", oneOf("READ-UNCOMMITTED", "READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE"), "Isolation level of new sessions"),
  live("lock_wait_timeout",                     "integer", "31536000", from(1, 31_536_000),    "Seconds to wait for a lock of a table's definition"),
  live("completion_type",                       "enum",    "NO_CHAIN", oneOf("NO_CHAIN", "CHAIN", "RELEASE"), "Effect of COMMIT and ROLLBACK on the session"),

  // Memory of sessions
  live("sort_buffer_size",                      "bytes",   "262144",   bytes(32 * kib, gib),   "Memory of a sort"),
  live("join_buffer_size",                      "bytes",   "262144",   bytes(128, gib),        "Memory of a join without an index"),
  live("read_buffer_size",                      "bytes",   "131072",   bytes(8 * kib, gib),    "Memory of a sequential scan; a multiple of 4 KiB"),
  live("read_rnd_buffer_size",                  "bytes",   "262144",   bytes(4 * kib, gib),    "Memory for rows that are read in the order of a sort"),
  live("tmp_table_size",                        "bytes",   "16777216", bytes(kib, gib),        "Maximum size of a temporary table in memory"),
  live("max_heap_table_size",                   "bytes",   "16777216", bytes(16 * kib, gib),   "Maximum size of a table of the MEMORY engine; a multiple of 1 KiB"),

  // Tables
  live("table_definition_cache",                "integer", "2000",     from(400, 524_288),     "Number of table definitions in memory"),
  live("table_open_cache",                      "integer", "2000",     from(400, 524_288),     "Number of open tables"),
  live("innodb_stats_persistent_sample_pages",  "integer", "20",       from(1, 100_000),       "Pages sampled for the statistics of an index"),
  live("innodb_stats_auto_recalc",              "boolean", "ON",       onOff,                  "Renews the statistics of a table that changed"),

  // InnoDB
  live("innodb_buffer_pool_size",               "bytes",   null,       bytes(128 * mib, 1_099_511_627_776), "Memory for cached pages, rounded up to 128 MiB"),
  live("innodb_redo_log_capacity",              "bytes",   null,       bytes(8 * mib, 137_438_953_472), "Disk space of the redo log, rounded to 1 MiB"),
  live("innodb_lock_wait_timeout",              "integer", "50",       from(1, 1_073_741_824), "Seconds to wait for the lock of a row"),
  live("innodb_rollback_on_timeout",            "boolean", "OFF",      { ...onOff, needsRestart: true }, "Rolls the whole transaction back when it waited too long for a row"),
  live("innodb_deadlock_detect",                "boolean", "ON",       onOff,                  "Detects deadlocks"),
  live("innodb_print_all_deadlocks",            "boolean", "OFF",      onOff,                  "Writes each deadlock to the log"),
  live("innodb_autoinc_lock_mode",              "integer", "2",        { ...from(1, 2), needsRestart: true }, "Lock for generated numbers: 1 consecutive, 2 interleaved"),
  live("innodb_adaptive_hash_index",            "boolean", "OFF",      onOff,                  "Indexes pages of the buffer pool by hashes"),
  live("innodb_io_capacity",                    "integer", "2000",     from(100, 100_000),     "Writes per second in the background"),
  live("innodb_io_capacity_max",                "integer", "4000",     from(100, 200_000),     "Writes per second in the background under pressure"),
  live("innodb_max_dirty_pages_pct",            "real",    "90", from(0, 99.999),       "Maximum share of changed pages in the buffer pool, in percent"),
  live("innodb_old_blocks_time",                "integer", "1000",     from(0, uint),          "Milliseconds before a scanned page may stay in the buffer pool"),
  live("innodb_purge_threads",                  "integer", "1",        { ...from(1, 32), needsRestart: true }, "Threads that remove old row versions"),
  live("innodb_thread_concurrency",             "integer", "0",        from(0, 1_000),         "Maximum number of threads in InnoDB; 0 disables the limit"),
  live("innodb_ft_min_token_size",              "integer", "3",        { ...from(0, 16), needsRestart: true }, "Minimum length of words in a full-text index"),
  live("innodb_ft_max_token_size",              "integer", "84",       { ...from(10, 84), needsRestart: true }, "Maximum length of words in a full-text index"),
  live("innodb_strict_mode",                    "boolean", "ON",       onOff,                  "Refuses table options that do not fit together"),
  live("ft_min_word_len",                       "integer", "4",        { ...from(1, 84), needsRestart: true }, "Minimum length of words in a full-text index of MyISAM"),

  // Statistics and log
  live("long_query_time",                       "real",    "10", from(0, 31_536_000),   "Seconds after which a statement counts as slow"),
  live("min_examined_row_limit",                "integer", "0",        from(0, uint),          "Minimum number of examined rows of a slow statement"),
  live("log_queries_not_using_indexes",         "boolean", "OFF",      onOff,                  "Counts statements without an index as slow"),
  live("binlog_row_image",                      "enum",    "FULL",     oneOf("FULL", "MINIMAL", "NOBLOB"), "Columns of a changed row in the binary log"),
  live("binlog_row_metadata",                   "enum",    "MINIMAL",  oneOf("MINIMAL", "FULL"), "Metadata of tables in the binary log"),
  live("binlog_rows_query_log_events",          "boolean", "OFF",      onOff,                  "Writes statements to the binary log beside their rows"),
];

export const mysqlManaged: readonly RegExp[] = [
  /^(admin_|authentication_|binlog_(?!row)|caching_sha2|gtid|init_|log_(?!queries)|mysqlx|master_|replica|rpl_|slave|source_|relay|report_|clone_|group_replication|performance_schema|persist|require_secure|secure_|skip_|ssl|super_read|tls|validate_password)/,
  /^(basedir|bind_address|datadir|character_set_filesystem|default_authentication_plugin|enforce_gtid_consistency|flush|general_log.*|innodb_(flush_log_at_trx_commit|doublewrite.*|data_.*|log_.*|undo_.*|temp_.*|tmpdir|directories|force_recovery|fast_shutdown)|lower_case_table_names|local_infile|mandatory_roles|activate_all_roles_on_login|partial_revokes|pid_file|plugin_.*|port|read_only|server_id|server_uuid|shared_memory.*|slow_query_log.*|socket|sync_binlog|tmpdir|user|automatic_sp_privileges)$/,
];
