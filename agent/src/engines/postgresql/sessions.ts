import { createMutex, type Mutex } from "@holdfast/common/concurrency/mutex.ts";
import type { EngineSession, SessionsFacet } from "../insight-facets.ts";
import { platformRoles } from "./layout.ts";
import { type Session, withSession } from "./session.ts";

const statementMs = 5_000;
const textMax = 10_000;

const ofUsers = `backend_type = 'client backend'
  AND usesysid NOT IN (SELECT oid FROM pg_roles WHERE rolname = ANY ($1::text[]))`;
const startedUs = "(extract(epoch FROM backend_start) * 1000000)::bigint";

const runningSql = `
  SELECT pid, ${startedUs} AS started_us, coalesce(usename, usesysid::text) AS username, coalesce(datname, '') AS database,
    state, CASE WHEN wait_event IS NOT NULL AND state = 'active' THEN wait_event_type || ': ' || wait_event ELSE '' END AS wait,
    CASE WHEN wait_event_type = 'Lock' THEN pg_blocking_pids(pid) ELSE '{}' END AS blocked_by,
    greatest(extract(epoch FROM clock_timestamp() - query_start), 0)::float8 AS age_seconds,
    greatest(extract(epoch FROM clock_timestamp() - xact_start), 0)::float8 AS transaction_seconds,
    coalesce(host(client_addr), '') AS client, left(query, ${textMax}) AS query
  FROM pg_stat_activity
  WHERE ${ofUsers} AND (state <> 'idle' OR xact_start IS NOT NULL) AND state IS NOT NULL
  ORDER BY coalesce(xact_start, query_start), pid LIMIT $2`;

interface Row {
  readonly pid: number;
  readonly started_us: string;
  readonly username: string;
  readonly database: string;
  readonly state: string;
  readonly wait: string;
  readonly blocked_by: number[];
  readonly age_seconds: number | null;
  readonly transaction_seconds: number | null;
  readonly client: string;
  readonly query: string;
}

/** Users' sessions, from pg_stat_activity. */
export const sessions: SessionsFacet = {
  running: (instance, limit, signal) =>
    inInsightLane(instance, signal, async (session) => {
      const rows = await session.rows<Row>(runningSql, [platformRoles, limit + 1]);
      return { queries: rows.slice(0, limit).map(runningOf), truncated: rows.length > limit };
    }),

  /** Checks and signals in one statement: a pid that was reused by another session is not found. */
  signal: (instance, { pid, startedUs: started }, { terminate }, signal) =>
    inInsightLane(instance, signal, async (session) => {
      const signalFunction = terminate ? "pg_terminate_backend(pid)" : "pg_cancel_backend(pid)";
      const rows = await session.rows<{ sent: boolean }>(
        `SELECT ${signalFunction} AS sent FROM pg_stat_activity WHERE ${ofUsers} AND pid = $2 AND ${startedUs} = $3::bigint`,
        [platformRoles, pid, String(started)],
      );
      return { found: rows[0]?.sent === true };
    }),
};

function inInsightLane<T>(
  instance: Parameters<typeof withSession>[0],
  signal: AbortSignal,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return insightLane(() => withSession(instance, signal, work, { statementMs }), { signal });
}

function runningOf(row: Row) {
  const session: EngineSession = { pid: row.pid, startedUs: BigInt(row.started_us) };
  return {
    session,
    username: row.username,
    database: row.database,
    state: row.state,
    wait: row.wait,
    blockedBy: row.blocked_by,
    ageSeconds: row.age_seconds ?? 0,
    transactionSeconds: row.transaction_seconds ?? undefined,
    client: row.client,
    query: row.query,
  };
}

/**
 * Statistics and session lists share one of the connections that are reserved for the platform; metrics use another
 * one, and probes, users and databases the remaining ones. An agent runs a single engine.
 */
export const insightLane: Mutex = createMutex();
