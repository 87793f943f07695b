import type { RunProgram } from "../../../os/program.ts";
import { isReadySql } from "../database-list.ts";
import { type OfflineData, runSingleUser, singleUserInput } from "../single-user.ts";

/** Summary of each database's contents by its name, which is equal before and after a complete upgrade. */
export type ClusterContents = ReadonlyMap<string, string>;

/** Indexes are not counted: pg_upgrade leaves out invalid ones. */
const countedSql = `SELECT 'counted ' || (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
    || ' relations, ' || (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
      WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')
    || ' functions, ' || (SELECT count(*) FROM pg_event_trigger) || ' event triggers, '
    || (SELECT count(*) FROM pg_extension WHERE extowner <> 10) || ' extensions of users' AS summary`;

const namesSql = `SELECT 'database ' || encode(convert_to(datname, 'UTF8'), 'hex') AS name FROM pg_database WHERE ${isReadySql}`;

/** Names of the databases that accept connections. */
export async function databasesIn(run: RunProgram, data: OfflineData, signal: AbortSignal): Promise<string[]> {
  // In hexadecimal, since a name may contain any character.
  const listed = await runSingleUser(run, data, { database: "template1", sql: singleUserInput([namesSql]) }, signal);
  return [...listed.matchAll(/"database ([0-9a-f]+)"/g)].map(([, hex = ""]) =>
    Buffer.from(hex, "hex").toString("utf8"),
  );
}

export async function contentsOf(run: RunProgram, data: OfflineData, signal: AbortSignal): Promise<ClusterContents> {
  const contents = new Map<string, string>();
  for (const database of await databasesIn(run, data, signal)) {
    const output = await runSingleUser(run, data, { database, sql: singleUserInput([countedSql]) }, signal);
    contents.set(database, /"counted ([^"]+)"/.exec(output)?.[1] ?? "nothing that could be counted");
  }
  return contents;
}

/** A sentence on the first difference of the upgraded data; undefined if they are complete. */
export function missingIn(upgraded: ClusterContents, before: ClusterContents): string | undefined {
  for (const [database, summary] of before) {
    const has = upgraded.get(database);
    if (has === undefined) return `There is no database ${database}.`;
    if (has !== summary) return `Database ${database} has ${has}; before it had ${summary}.`;
  }
  return undefined;
}
