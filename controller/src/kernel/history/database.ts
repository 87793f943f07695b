import { readFile } from "node:fs/promises";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { Log } from "@holdfast/common/log.ts";
import pg from "pg";

export interface DatabaseOptions {
  /** `postgres://user@host:port/database`. */
  readonly url: string;
  /** Read at each connection, so that the password can be rotated. */
  readonly passwordFile?: string;
  readonly tls?: { readonly ca: string; readonly certificate?: string; readonly privateKey?: string };
  readonly log: Log;
}

/**
 * Connections to the history database. Every query ends within five seconds, by a time-out here and on the server;
 * failures of the database throw STORE_UNAVAILABLE.
 */
export interface Database {
  query<R extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Runs a query that only reads, on separate connections, so that readers never delay writers. */
  read<R extends pg.QueryResultRow>(text: string, values?: readonly unknown[]): Promise<R[]>;
  /** Runs on one connection, without a statement time-out. */
  session<T>(run: (client: pg.PoolClient) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

const queryTimeoutMs = 5_000;
/** Readers time out before writers, whose work must continue. */
const readTimeoutMs = 4_000;
const poolMax = 6;
const readersMax = 4;

export function createDatabase({ url, passwordFile, tls, log }: DatabaseOptions): Database {
  const { hostname, port, username, pathname } = new URL(url);
  const connection = {
    // Not `connectionString`: its empty password would override the password of the file.
    host: hostname,
    port: Number(port || 5432),
    user: decodeURIComponent(username),
    database: decodeURIComponent(pathname.slice(1)),
    ...(passwordFile !== undefined && { password: async () => (await readFile(passwordFile, "utf8")).trim() }),
    ...(tls && { ssl: { ca: tls.ca, cert: tls.certificate, key: tls.privateKey } }),
    connectionTimeoutMillis: 2_000,
    idleTimeoutMillis: 60_000,
    keepAlive: true,
  };
  // Acknowledged rows are deleted from the outbox, so they must survive a crash, even if the server's settings disable
  // that.
  const options = `-c synchronous_commit=on -c statement_timeout=${queryTimeoutMs}`;
  const pool = new pg.Pool({ ...connection, max: poolMax, application_name: "holdfast-controller", options });
  // The server cancels a read before the client times out, so that no read continues after its caller has the error.
  const readOptions = `-c statement_timeout=${readTimeoutMs}`;
  const name = "holdfast-controller-reader";
  const readers = new pg.Pool({ ...connection, max: readersMax, application_name: name, options: readOptions });
  // A connection that breaks while idle leaves the pool; the next call opens another.
  for (const each of [pool, readers])
    each.on("error", (error) => log.debug("history connection broken", { error: String(error) }));

  async function queryOn<R extends pg.QueryResultRow>(connections: pg.Pool, text: string, values: readonly unknown[]) {
    try {
      // The server may hang: only the client's own time-out always works.
      const query = { text, values: [...values], query_timeout: queryTimeoutMs };
      const { rows } = await connections.query<R>(query);
      return rows;
    } catch (error) {
      throw asUnavailable(error);
    }
  }

  return {
    query: (text, values = []) => queryOn(pool, text, values),
    read: (text, values = []) => queryOn(readers, text, values),
    async session(run) {
      let client: pg.PoolClient;
      try {
        client = await pool.connect();
      } catch (error) {
        throw asUnavailable(error);
      }
      // A session that breaks between two statements emits "error", which would end the process; the next statement
      // fails for the caller.
      const ignore = (error: Error) => log.debug("history session broken", { error: String(error) });
      client.on("error", ignore);
      let failed = true;
      try {
        await client.query("SET statement_timeout = 0");
        const result = await run(client);
        await client.query("RESET statement_timeout");
        failed = false;
        return result;
      } finally {
        client.off("error", ignore);
        // After a failure the session's state is unknown, so close the connection.
        client.release(failed);
      }
    },
    close: async () => void (await Promise.all([pool.end(), readers.end()])),
  };
}

/**
 * Returns errors about the statement itself unchanged, since they are bugs of this code. All others mean that the
 * database is unavailable.
 */
function asUnavailable(error: unknown): unknown {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  // SQLSTATE classes of statement errors: data exception, integrity violation, syntax or missing object.
  if (/^(22|23|42)/.test(code)) return error;
  return new HoldfastError("STORE_UNAVAILABLE", "The history database does not respond.", { cause: error });
}
