import pg from "pg";
import type { Access } from "../commands.ts";

/** Access of the engine's users, by the roles that they are members of. */
export interface Accesses {
  /** Users without an entry may not sign in. Rejects if the engine does not respond. */
  of(users: readonly string[]): Promise<ReadonlyMap<string, Access>>;
  close(): Promise<void>;
}

export interface AccessesOptions {
  readonly socketDirectory: string;
  readonly port: number;
  readonly database: string;
  /** Role of the front end's own sessions. */
  readonly role: string;
  /** Roles whose members may write, and roles whose members may only read. */
  readonly writers: readonly string[];
  readonly readers: readonly string[];
}

const timeoutMs = 5_000;

const membersSql = `SELECT u.rolname AS user, bool_or(g.rolname = ANY ($2::text[])) AS writes
  FROM pg_catalog.pg_roles u
    JOIN pg_catalog.pg_auth_members m ON m.member = u.oid
    JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
  WHERE u.rolname = ANY ($1::text[]) AND u.rolcanlogin AND u.rolconnlimit <> 0
    AND g.rolname = ANY ($2::text[] || $3::text[])
  GROUP BY u.rolname`;

export function createAccesses(options: AccessesOptions): Accesses {
  const { socketDirectory, port, database, role, writers, readers } = options;
  const pool = new pg.Pool({
    host: socketDirectory,
    port,
    database,
    user: role,
    max: 2,
    connectionTimeoutMillis: timeoutMs,
    query_timeout: timeoutMs,
    application_name: "opmsg",
  });
  // A connection that breaks while it is idle is replaced by the next query.
  pool.on("error", () => undefined);
  return {
    async of(users) {
      const { rows } = await pool.query<{ user: string; writes: boolean }>(membersSql, [users, writers, readers]);
      return new Map(rows.map(({ user, writes }) => [user, writes ? "readwrite" : "readonly"]));
    },
    close: () => pool.end(),
  };
}
