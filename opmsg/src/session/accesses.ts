import pg from "pg";
import type { Access } from "../commands.ts";
import type { IndexReference, UniqueIndex } from "../protocol/duplicate-keys.ts";
import { findIndex } from "./indexes.ts";

/** Access of the engine's users, by the roles that they are members of, and its indexes. */
export interface Accesses {
  /** Undefined while the engine accepts no sessions. Rejects if it does not respond in time. */
  of(users: readonly string[]): Promise<EngineAccesses | undefined>;
  /** Undefined for an index that does not exist. Rejects if the engine does not respond in time. */
  index(reference: IndexReference): Promise<UniqueIndex | undefined>;
  close(): Promise<void>;
}

export interface EngineAccesses {
  /** Time at which the engine's process started, which identifies it. */
  readonly started: string;
  /** True if the engine follows a primary, and so accepts no writes. */
  readonly isReplica: boolean;
  /** Users without an entry may not sign in. */
  readonly users: ReadonlyMap<string, Access>;
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

/** One row at least, with the time of the start and the role. */
const membersSql = `SELECT extract(epoch FROM pg_catalog.pg_postmaster_start_time())::text AS started,
    pg_catalog.pg_is_in_recovery() AS replica, found.*
  FROM (SELECT) one LEFT JOIN (
    SELECT u.rolname AS user, bool_or(g.rolname = ANY ($2::text[])) AS writes
    FROM pg_catalog.pg_roles u
      JOIN pg_catalog.pg_auth_members m ON m.member = u.oid
      JOIN pg_catalog.pg_roles g ON g.oid = m.roleid
    WHERE u.rolname = ANY ($1::text[]) AND u.rolcanlogin AND u.rolconnlimit <> 0
      AND g.rolname = ANY ($2::text[] || $3::text[])
    GROUP BY u.rolname) found ON true`;

interface MemberRow {
  readonly started: string;
  readonly replica: boolean;
  readonly user: string | null;
  readonly writes: boolean;
}

/** Codes of an engine without a process, and of one that starts or shuts down (SQLSTATE). */
const downCodes = ["ENOENT", "ECONNREFUSED", "57P01", "57P02", "57P03"];

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
      const read = () => pool.query<MemberRow>(membersSql, [users, writers, readers]);
      try {
        // A session of an earlier process of the engine fails once.
        const { rows } = await read().catch(read);
        const members = rows.flatMap(({ user, writes }) =>
          user === null ? [] : [[user, writes ? "readwrite" : "readonly"] as const],
        );
        const [{ started, replica } = { started: "", replica: false }] = rows;
        return { started, isReplica: replica, users: new Map(members) };
      } catch (error) {
        if (error instanceof Error && "code" in error && downCodes.includes(String(error.code))) return undefined;
        throw error;
      }
    },
    index: (reference) => findIndex(pool, reference),
    close: () => pool.end(),
  };
}
