import { stat } from "node:fs/promises";
import type { Instance } from "../engine-driver.ts";
import type { EngineRunningQuery, SessionsFacet } from "../insight-facets.ts";
import { isSessionSql } from "./end-sessions.ts";
import { engineSocket } from "./layout.ts";
import { isPlatformNameSql } from "./platform-accounts.ts";
import { numberOf, type Session, withSession } from "./session.ts";

const withinMs = 5_000;
const textMax = 10_000;

/** Users' sessions on the table `t` of threads. */
const ofUsers = `${isSessionSql("t")} AND NOT ${isPlatformNameSql("t.processlist_user")}`;

const runningSql = `
  SELECT t.processlist_id AS id, t.processlist_user AS username, COALESCE(t.processlist_db, '') AS name,
    t.processlist_command AS state, COALESCE(t.processlist_state, '') AS wait,
    COALESCE(t.processlist_time, 0) AS age, LEFT(COALESCE(t.processlist_info, ''), ${textMax}) AS query,
    TIMESTAMPDIFF(MICROSECOND, x.trx_started, UTC_TIMESTAMP(6)) / 1000000 AS transaction_age,
    (SELECT GROUP_CONCAT(DISTINCT b.processlist_id) FROM performance_schema.data_lock_waits w
       JOIN performance_schema.threads b ON b.thread_id = w.blocking_thread_id
     WHERE w.requesting_thread_id = t.thread_id) AS blocked_by
  FROM performance_schema.threads t
    LEFT JOIN information_schema.innodb_trx x ON x.trx_mysql_thread_id = t.processlist_id
  WHERE ${ofUsers} AND (t.processlist_command <> 'Sleep' OR x.trx_id IS NOT NULL)
  ORDER BY t.processlist_time DESC, t.processlist_id LIMIT`;

interface Row {
  readonly id: string;
  readonly username: string;
  readonly name: string;
  readonly state: string;
  readonly wait: string;
  readonly age: string;
  readonly query: string;
  readonly transaction_age: string | null;
  readonly blocked_by: string | null;
}

/** Users' sessions. The engine counts their ids from its start on, so the start identifies a session with its id. */
export const sessions: SessionsFacet = {
  running: (instance, limit, signal) =>
    withSession(
      instance,
      signal,
      async (session) => {
        const startedUs = await startUsOf(instance);
        const rows = await session.rows<Row>(`${runningSql} ${Math.floor(limit) + 1}`);
        const queries = rows.slice(0, limit).map((row) => runningOf(row, startedUs));
        return { queries, truncated: rows.length > limit };
      },
      { withinMs },
    ),

  signal: (instance, { pid, startedUs }, { terminate }, signal) =>
    withSession(
      instance,
      signal,
      async (session) => {
        if ((await startUsOf(instance)) !== startedUs || !(await isOfUsers(session, pid))) return { found: false };
        try {
          await session.rows(`KILL ${terminate ? "CONNECTION" : "QUERY"} ${Math.floor(pid)}`);
          return { found: true };
        } catch (error) {
          // ER_NO_SUCH_THREAD: it ended by itself.
          if (numberOf(error) === 1094) return { found: false };
          throw error;
        }
      },
      { withinMs },
    ),
};

async function isOfUsers(session: Session, id: number): Promise<boolean> {
  const sql = `SELECT 1 FROM performance_schema.threads t WHERE ${ofUsers} AND t.processlist_id = ?`;
  return (await session.rows(sql, [id])).length > 0;
}

async function startUsOf(instance: Instance): Promise<bigint> {
  return BigInt(Math.round((await engineStartOf(instance)).mtimeMs * 1_000));
}

function runningOf(row: Row, startedUs: bigint): EngineRunningQuery {
  return {
    session: { pid: Number(row.id), startedUs },
    username: row.username,
    database: row.name,
    state: row.state,
    wait: row.wait,
    blockedBy: row.blocked_by?.split(",").map(Number) ?? [],
    ageSeconds: Number(row.age),
    transactionSeconds: row.transaction_age === null ? undefined : Number(row.transaction_age),
    // The front hides it.
    client: "",
    query: row.query,
  };
}

/** Identifies the engine's run: it creates its socket at each start. */
export async function engineStartOf(instance: Instance): Promise<{ readonly ino: number; readonly mtimeMs: number }> {
  const { ino, mtimeMs } = await stat(engineSocket(instance));
  return { ino, mtimeMs };
}
