import type { Extreme } from "./extremes.ts";

/** A row of pg_settings. */
export interface Setting {
  readonly name: string;
  readonly vartype: string;
  readonly min_val: string | null;
  readonly max_val: string | null;
  readonly enumvals: readonly string[] | null;
  readonly setting: string;
}

/** Values of text settings; `user` is the user who sets them. */
const texts = (user: string): Readonly<Record<string, readonly string[]>> => ({
  application_name: ["", "x".repeat(63)],
  client_encoding: ["LATIN1", "SQL_ASCII"],
  createrole_self_grant: ["", "set, inherit"],
  DateStyle: ["German, DMY", "SQL, MDY"],
  default_table_access_method: ["heap"],
  default_tablespace: ["nowhere", ""],
  default_text_search_config: ["pg_catalog.simple", "pg_catalog.german"],
  lc_monetary: ["POSIX"],
  lc_numeric: ["POSIX"],
  lc_time: ["POSIX"],
  local_preload_libraries: ["nowhere"],
  "plpgsql.extra_errors": ["all"],
  "plpgsql.extra_warnings": ["all"],
  restrict_nonsystem_relation_kind: ["view, foreign-table"],
  role: [user],
  search_path: ["public", "nowhere"],
  session_authorization: [user],
  temp_tablespaces: ["nowhere"],
  TimeZone: ["Etc/GMT+12", "Pacific/Kiritimati"],
  timezone_abbreviations: ["Australia", "India"],
});

/** Values of each setting, the ends of its range and all of an enum; throws for a text without values. */
export function sessionValues(settings: readonly Setting[], user: string): readonly (readonly Extreme[])[] {
  const chosen = texts(user);
  const all = settings.map(({ name, ...setting }) => ({ name, values: valuesOf(setting) ?? chosen[name] }));
  const unknown = all.filter(({ values }) => values === undefined).map(({ name }) => name);
  if (unknown.length > 0) throw new Error(`no values of ${unknown.join(", ")}`);
  const rounds = Math.max(...all.map(({ values = [] }) => values.length));
  return Array.from({ length: rounds }, (_, round) =>
    all.flatMap(({ name, values = [] }) => {
      const value = values[round];
      return value === undefined ? [] : [{ name, value }];
    }),
  );
}

function valuesOf({ vartype, min_val, max_val, enumvals, setting }: Omit<Setting, "name">): string[] | undefined {
  const isOther = (value: string | null): value is string => value !== null && value !== setting;
  switch (vartype) {
    case "bool":
      return [setting === "on" ? "off" : "on"];
    case "enum":
      return (enumvals ?? []).filter(isOther);
    case "integer":
    case "real":
      return [...(Number(min_val) <= 0 && vartype === "integer" ? ["1"] : []), min_val, max_val].filter(isOther);
    default:
      return undefined;
  }
}
