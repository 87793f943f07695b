import { codeOf, type Session } from "./session.ts";

/**
 * Which databases an engine has, and in which a session can be opened. Every loop over databases takes their names from here:
 * one database that cannot be entered must not end the work in the others (database-list.test.ts refuses other readers).
 */
export interface DatabaseList {
  /** A session can be opened in them. */
  readonly ready: readonly string[];
  /** Those of them that CREATE DATABASE copies, and cannot while a session is open there. */
  readonly templates: readonly string[];
  /** ALTER DATABASE ... ALLOW_CONNECTIONS false; template0 is left out. */
  readonly closed: readonly string[];
  /** Their DROP DATABASE began and did not end: files may be missing, and nothing but another DROP DATABASE is possible. */
  readonly invalid: readonly string[];
}

/** `dropping`: its DROP DATABASE is under way. */
export type DatabaseState = "ready" | "closed" | "dropping" | "invalid";

/** DROP DATABASE writes this limit before it removes files, outside of its transaction. */
const invalidLimit = -2;

/** Condition on rows of pg_database: data are there. An invalid database is also left out of the age of transaction ids. */
export const isValidSql = `datconnlimit <> ${invalidLimit}`;
/** Condition on rows of pg_database: a session can be opened. */
export const isReadySql = `datallowconn AND ${isValidSql}`;
/** DatabaseState of a row of pg_database. A DROP DATABASE that is under way has its lock. */
export const databaseStateSql = `CASE
    WHEN NOT ${isValidSql} AND EXISTS (SELECT FROM pg_locks WHERE locktype = 'object' AND classid = 'pg_database'::regclass
      AND objid = pg_database.oid AND mode = 'AccessExclusiveLock' AND granted) THEN 'dropping'
    WHEN NOT ${isValidSql} THEN 'invalid'
    WHEN NOT datallowconn THEN 'closed'
    ELSE 'ready' END`;

export async function listDatabases(session: Pick<Session, "rows">): Promise<DatabaseList> {
  const rows = await session.rows<{ name: string; state: DatabaseState; template: boolean }>(
    `SELECT datname AS name, ${databaseStateSql} AS state, datistemplate AS template
     FROM pg_database WHERE datname <> 'template0' ORDER BY datname`,
  );
  const those = (state: DatabaseState, of = rows) => of.filter((row) => row.state === state).map(({ name }) => name);
  const templates = rows.filter(({ template }) => template);
  return {
    ready: those("ready"),
    templates: those("ready", templates),
    closed: those("closed"),
    invalid: those("invalid"),
  };
}

/** SQLSTATE of a connection to a database that is gone, closed or invalid; a statement may have failed with them as well. */
const refusals = ["3D000", "55000"];

/** Can the engine have refused the connection because of the database? It may be gone, closed or invalid. */
export function isAboutDatabase(error: unknown): boolean {
  return refusals.includes(codeOf(error));
}

/**
 * Works in one database after another and resolves with the results: in all that are ready, or in those of the names. A database
 * that went away, was closed or became invalid meanwhile is left out.
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
      if (!isAboutDatabase(error) || (await list()).ready.includes(name)) throw error;
    }
  }
  return results;
}

/** In words for users: databases that are invalid, and the way out. */
export function invalidReason(names: readonly string[]): string {
  const named = inShort(names);
  return names.length === 1
    ? `Database ${named} is invalid: its DROP DATABASE began and did not end, and data are missing. Drop it.`
    : `Databases ${named} are invalid: their DROP DATABASE began and did not end, and data are missing. Drop them.`;
}

const namedMax = 5;

/** The first names, and how many more there are. */
export function inShort(names: readonly string[]): string {
  const more = names.length - namedMax;
  return names.slice(0, namedMax).join(", ") + (more > 0 ? ` and ${more} more` : "");
}
