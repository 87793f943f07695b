/** Settings that leave a session no time, and others that change its behavior. */
const shortTimeouts = {
  transaction_timeout: "1",
  idle_session_timeout: "1",
  idle_in_transaction_session_timeout: "1",
  statement_timeout: "1",
  lock_timeout: "1",
  default_transaction_isolation: "serializable",
  IntervalStyle: "sql_standard",
  bytea_output: "escape",
};

/** Parameters of postgresql.conf. */
export const shortTimeoutParameters = { ...shortTimeouts, temp_file_limit: "0" };

/** Settings that the owner of a database can set for all of its sessions. */
export const hostileSettings: Readonly<Record<string, string>> = {
  ...shortTimeouts,
  DateStyle: "German",
  TimeZone: "Asia/Kathmandu",
  extra_float_digits: "-15",
  client_encoding: "LATIN1",
  search_path: "public",
  default_transaction_read_only: "on",
  default_transaction_deferrable: "on",
  default_tablespace: "nowhere",
  exit_on_error: "on",
  check_function_bodies: "off",
  standard_conforming_strings: "off",
  backslash_quote: "off",
  transform_null_equals: "on",
  array_nulls: "off",
  quote_all_identifiers: "on",
  local_preload_libraries: "nowhere",
  debug_print_parse: "on",
  debug_parallel_query: "on",
  log_parameter_max_length_on_error: "-1",
  client_min_messages: "error",
  stats_fetch_consistency: "snapshot",
  restrict_nonsystem_relation_kind: "view",
  lc_numeric: "C",
  xmloption: "document",
  session_authorization: "app_user",
  role: "app_user",
};

/** Statements of the owner. */
export function hostileStatements(database: string): readonly string[] {
  return Object.entries(hostileSettings).map(([name, value]) => `ALTER DATABASE ${database} SET ${name} TO '${value}'`);
}
