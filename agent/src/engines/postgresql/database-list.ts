import { summarizeNames } from "../summarize-names.ts";
import { codeOf, type Session } from "./session.ts";

/**
 * Databases of an engine by whether a session can be opened. Every loop over databases takes its names from here: one
 * database that refuses sessions must not end the work in the others (database-list.test.ts rejects other readers of
 * pg_database).
 */
export interface DatabaseList {
  /** A session can be opened. */
  readonly ready: readonly string[];
  /** Ready ones that CREATE DATABASE copies, which fails while a session is open there. */
  readonly templates: readonly string[];
  /** Databases with ALLOW_CONNECTIONS false, except template0. */
  readonly closed: readonly string[];
  /** A DROP DATABASE was interrupted: files may be missing, and only another DROP DATABASE is possible. */
  readonly invalid: readonly string[];
  /** Databases with CONNECTION LIMIT 0, where superusers alone can open a session. */
  readonly limited: readonly string[];
}

/** `dropping`: a DROP DATABASE is in progress. */
export type DatabaseState = "ready" | "closed" | "dropping" | "invalid";

/**
 * Value of datconnlimit that DROP DATABASE writes before it removes files, outside of its transaction
 * (DATCONNLIMIT_INVALID_DB).
 */
const invalidLimit = -2;

/**
 * SQL condition on pg_database: the data are complete. An invalid database does not count for the age of transaction
 * ids.
 */
export const isValidSql = `datconnlimit <> ${invalidLimit}`;
/** SQL condition on pg_database: the engine refuses sessions of users. */
const isLimitedSql = "datconnlimit = 0";
/** SQL condition on pg_database: a session can be opened. */
export const isReadySql = `datallowconn AND ${isValidSql}`;
/** SQL expression: DatabaseState of a row of pg_database. A DROP DATABASE in progress has its lock. */
export const databaseStateSql = `CASE
    WHEN NOT ${isValidSql} AND EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
      AND objid = pg_database.oid AND mode = 'AccessExclusiveLock' AND granted) THEN 'dropping'
    WHEN NOT ${isValidSql} THEN 'invalid'
    WHEN NOT datallowconn THEN 'closed'
    ELSE 'ready' END`;

export async function listDatabases(session: Pick<Session, "rows">): Promise<DatabaseList> {
  const rows = await session.rows<{ name: string; state: DatabaseState; template: boolean; limited: boolean }>(
    `SELECT datname AS name, ${databaseStateSql} AS state, datistemplate AS template, ${isLimitedSql} AS limited
     FROM pg_database WHERE datname <> 'template0' ORDER BY datname`,
  );
  const namesIn = (state: DatabaseState, of = rows) => of.filter((row) => row.state === state).map(({ name }) => name);
  const templates = rows.filter(({ template }) => template);
  return {
    ready: namesIn("ready"),
    templates: namesIn("ready", templates),
    closed: namesIn("closed"),
    invalid: namesIn("invalid"),
    limited: rows.filter(({ limited }) => limited).map(({ name }) => name),
  };
}

/** SQLSTATE of a connection to a missing, closed or invalid database. Statements may fail with them too. */
const refusals = ["3D000", "55000"];

/** True if the engine may have refused the connection because the database is missing, closed or invalid. */
export function isDatabaseUnavailable(error: unknown): boolean {
  return refusals.includes(codeOf(error));
}

/**
 * Runs the work in one database after another, in all ready ones or in the databases of `names`, and resolves with the
 * results. Skips a database that was dropped, closed or became invalid before its session opened.
 */
export async function inEachDatabase<T>(
  list: () => Promise<DatabaseList>,
  work: (database: string) => Promise<T>,
  names?: readonly string[],
): Promise<T[]> {
  const results: T[] = [];
  for (const name of names ?? (await list()).ready) {
    try {
      results.push(await work(name));
    } catch (error) {
      if (!isDatabaseUnavailable(error) || (await list()).ready.includes(name)) throw error;
    }
  }
  return results;
}

/** Sentence for users about databases with CONNECTION LIMIT 0 and the remedy. */
export function limitedReason(names: readonly string[]): string {
  const summary = summarizeNames(names);
  const subject = names.length === 1 ? `Database ${summary} has` : `Databases ${summary} have`;
  return `${subject} CONNECTION LIMIT 0: users cannot connect. Set ALTER DATABASE ... CONNECTION LIMIT -1 in another database.`;
}

/** Sentence for users about invalid databases and the remedy. */
export function invalidReason(names: readonly string[]): string {
  const summary = summarizeNames(names);
  return names.length === 1
    ? `Database ${summary} is invalid: its DROP DATABASE was interrupted, and data are missing. Drop it.`
    : `Databases ${summary} are invalid: their DROP DATABASE was interrupted, and data are missing. Drop them.`;
}
