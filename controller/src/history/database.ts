import { readFile } from "node:fs/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import pg from "pg";

export interface DatabaseOptions {
  /** `postgres://user@host:port/database`. */
  readonly url: string;
  /** Read at each connection, so that it can change. */
  readonly passwordFile?: string;
  readonly tls?: { readonly ca: string; readonly certificate?: string; readonly privateKey?: string };
  readonly log: Log;
}

/** Connections to the history database. Every call ends within seconds; trouble with the database is STORE_UNAVAILABLE. */
export interface Database {
  query<R extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Runs it on one connection, without a limit on the time of its statements. */
  session<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const queryMs = 5_000;

export function createDatabase({ url, passwordFile, tls, log }: DatabaseOptions): Database {
  const { hostname, port, username, pathname } = new URL(url);
  const pool = new pg.Pool({
    // Not `connectionString`: its empty password would stand against the file's.
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
    ...(passwordFile !== undefined && { password: async () => (await readFile(passwordFile, "utf8")).trim() }),
    ...(tls && { ssl: { ca: tls.ca, cert: tls.certificate, key: tls.privateKey } }),
    max: 8,
    connectionTimeoutMillis: 2_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
    application_name: "holdfast-controller",
    // What was acknowledged to us is removed from the outbox: it must survive a crash, however the server is set.
    options: "-c synchronous_commit=on",
  });
  // A connection that breaks while it is idle leaves the pool; the next call takes another.
  pool.on("error", (error) => log.debug("history connection broken", { error: String(error) }));

  return {
    async query<R extends pg.QueryResultRow>(text: string, values: readonly unknown[] = []) {
      try {
        // The server may hang: the client's own limit is the one that always works.
        const query = { text, values: [...values], query_timeout: queryMs };
        const { rows } = await pool.query<R>(query);
        return rows;
      } catch (error) {
        throw asUnavailable(error);
      }
    },
    async session(run) {
      let client: pg.PoolClient;
      try {
        client = await pool.connect();
      } catch (error) {
        throw asUnavailable(error);
      }
      // One that breaks between two statements tells nobody but its listeners; the next statement fails and tells the caller.
      const ignore = (error: Error) => log.debug("history session broken", { error: String(error) });
      client.on("error", ignore);
      let failed = true;
      try {
        const result = await run(client);
        failed = false;
        return result;
      } finally {
        client.off("error", ignore);
        // After a failure nobody knows what state the session is in.
        client.release(failed);
      }
    },
    close: () => pool.end(),
  };
}

/** What the database says about our SQL is our mistake and stays as it is; all else is trouble with the database. */
function asUnavailable(error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // Classes of PostgreSQL's errors that are about a statement: data, integrity, syntax, missing objects.
  if (/^(22|23|42)/.test(code)) return error;
  return new HoldfastError("STORE_UNAVAILABLE", "The history database does not answer.", { cause: error });
}
