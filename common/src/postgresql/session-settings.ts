/** Settings of PostgreSQL by name. */
export type SessionSettings = Readonly<Record<string, string>>;

/** No session ends, and no statement or lock is given up, for a limit that users set. */
// oxlint-disable-next-line holdfast/own-keys -- read by its entries
export const unlimited: SessionSettings = {
  statement_timeout: "0",
  lock_timeout: "0",
  transaction_timeout: "0",
  idle_session_timeout: "0",
  idle_in_transaction_session_timeout: "0",
};

/**
 * Every session of the platform begins with these: options of a connection win over postgresql.conf, ALTER DATABASE ... SET and
 * ALTER ROLE ... SET. What users set there must not change what our statements mean, what answers look like, how long they may take,
 * or what of them is logged. All of them may be set by any role.
 */
const pinned: SessionSettings = {
  ...unlimited,
  // A statement whose client is gone ends soon: else it goes on unseen, and may commit after its caller was told that nothing changed.
  client_connection_check_interval: "500ms",

  // Whose rights it has, and which names it finds.
  role: "none",
  search_path: "pg_catalog,pg_temp",
  local_preload_libraries: "",
  restrict_nonsystem_relation_kind: "",

  // What a transaction is.
  default_transaction_read_only: "off",
  default_transaction_isolation: "read committed",
  default_transaction_deferrable: "off",
  synchronous_commit: "on",
  exit_on_error: "off",

  // What a statement means.
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

  // How it is run, and in how much memory.
  hash_mem_multiplier: "2",
  recursive_worktable_factor: "10",
  jit: "off",
  debug_parallel_query: "off",
  plan_cache_mode: "auto",
  stats_fetch_consistency: "cache",

  // What answers and errors look like, and what of a statement is printed.
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

/** Does a session of the platform have its own value of this setting, whatever users get? */
export function isPinned(setting: string): boolean {
  return Object.hasOwn(pinned, setting);
}

/** Pure: the `options` that a connection of the platform begins with; `own` is added to the settings above, or takes their place. */
export function startupOptions(own: SessionSettings = {}): string {
  return optionsOf({ ...pinned, ...own });
}

/** Pure: exactly these settings as `options`. */
export function optionsOf(settings: SessionSettings): string {
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replaceAll(/[\\ ]/g, "\\$&")}`)
    .join(" ");
}
