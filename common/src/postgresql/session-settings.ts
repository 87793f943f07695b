/** Settings of PostgreSQL by name. */
export type SessionSettings = Readonly<Record<string, string>>;

/** Disables all timeouts that users may set. */
export const unlimited: SessionSettings = {
  statement_timeout: "0",
  lock_timeout: "0",
  transaction_timeout: "0",
  idle_session_timeout: "0",
  idle_in_transaction_session_timeout: "0",
};

/**
 * Settings of every session that the platform opens. They are sent as startup options, which take precedence over
 * postgresql.conf, ALTER DATABASE ... SET and ALTER ROLE ... SET. So settings of users cannot change the meaning,
 * output, limits or logging of the platform's statements. Any role may set all of them (PostgreSQL manual, chapter
 * 19.1.4).
 */
const pinned: SessionSettings = {
  ...unlimited,
  // The engine ends a statement within this time after its client disconnected. Without this the statement might commit
  // after its caller got an error.
  client_connection_check_interval: "500ms",

  // Privileges and name resolution.
  role: "none",
  search_path: "pg_catalog,pg_temp",
  local_preload_libraries: "",
  restrict_nonsystem_relation_kind: "",

  // Transaction behavior.
  default_transaction_read_only: "off",
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  synchronous_commit: "on",
  exit_on_error: "off",

  // Meaning of statements.
  standard_conforming_strings: "on",
  backslash_quote: "safe_encoding",
  transform_null_equals: "off",
  array_nulls: "on",
  check_function_bodies: "on",
  xmloption: "content",
  row_security: "on",
  default_tablespace: "",
  temp_tablespaces: "",
  default_table_access_method: "heap",

  // Execution and memory.
  hash_mem_multiplier: "2",
  recursive_worktable_factor: "10",
  jit: "off",
  debug_parallel_query: "off",
  plan_cache_mode: "auto",
  stats_fetch_consistency: "cache",

  // Format of results and errors, and logging of statements.
  client_encoding: "UTF8",
  client_min_messages: "notice",
  DateStyle: "ISO,MDY",
  IntervalStyle: "postgres",
  TimeZone: "UTC",
  bytea_output: "hex",
  extra_float_digits: "1",
  lc_monetary: "C",
  lc_numeric: "C",
  lc_time: "C",
  quote_all_identifiers: "off",
  log_parameter_max_length_on_error: "0",
  debug_print_parse: "off",
  debug_print_rewritten: "off",
  debug_print_plan: "off",
};

/** True if sessions of the platform override this setting of users. */
export function isPinned(setting: string): boolean {
  return Object.hasOwn(pinned, setting);
}

/** The startup `options` of a platform connection. `extra` adds to the pinned settings or replaces them. */
export function startupOptions(extra: SessionSettings = {}): string {
  return optionsOf({ ...pinned, ...extra });
}

/** Formats settings as the startup parameter `options`. */
export function optionsOf(settings: SessionSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, "\\$&")}`)
    .join(" ");
}
