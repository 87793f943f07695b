import type { RunProgram } from "../../../os/program.ts";
import { isReadySql } from "../database-list.ts";
import { type ClosedData, runSingle, singleInput } from "../single-user.ts";

/** What is in each database, by name, in words that are equal before and after an upgrade. */
export type Contents = ReadonlyMap<string, string>;

/** Indexes are left out: pg_upgrade leaves out those that are not valid. */
const countedSql = `SELECT 'counted ' || (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
    || ' relations, ' || (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
    || ' functions, ' || (SELECT count(*) FROM pg_event_trigger) || ' event triggers' AS words`;

const namesSql = `SELECT 'database ' || encode(convert_to(datname, 'UTF8'), 'hex') AS name FROM pg_database WHERE ${isReadySql}`;

/** Names of the databases that can be entered. */
export async function databasesIn(run: RunProgram, data: ClosedData, signal: AbortSignal): Promise<string[]> {
  // In hex, as a name may have anything in it.
  const listed = await runSingle(run, data, { database: "template1", sql: singleInput([namesSql]) }, signal);
  return [...listed.matchAll(/"database ([0-9a-f]+)"/g)].map(([, hex = ""]) =>
    Buffer.from(hex, "hex").toString("utf8"),
  );
}

export async function contentsOf(run: RunProgram, data: ClosedData, signal: AbortSignal): Promise<Contents> {
  const contents = new Map<string, string>();
  for (const database of await databasesIn(run, data, signal)) {
    const told = await runSingle(run, data, { database, sql: singleInput([countedSql]) }, signal);
    contents.set(database, /"counted ([^"]+)"/.exec(told)?.[1] ?? "nothing that could be counted");
  }
  return contents;
}

/** Pure: what the upgraded data lack of those of before, in words; undefined where they lack nothing. */
export function missingIn(upgraded: Contents, before: Contents): string | undefined {
  for (const [database, words] of before) {
    const has = upgraded.get(database);
    if (has === undefined) return `There is no database ${database}.`;
    if (has !== words) return `Database ${database} has ${has}; before it had ${words}.`;
  }
  return undefined;
}
