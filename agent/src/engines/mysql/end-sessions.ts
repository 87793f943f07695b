import { setTimeout as sleep } from "node:timers/promises";
import { numberOf, type Session } from "./session.ts";

/** SQL condition: a row of `threads` is a session of a client that has signed in. A user may have a thread's name. */
export const isSessionSql = (table: string): string =>
  `(${table}.name = 'thread/sql/one_connection'
    AND NOT (${table}.processlist_user = 'unauthenticated user' AND ${table}.processlist_command = 'Connect'))`;

const endRounds = 100;
const pollMs = 50;

/** Ends the sessions that the condition on the process list selects, and returns once all have ended. */
export async function endAll(session: Session, condition: string): Promise<void> {
  for (let round = 0; round < endRounds; round += 1) {
    if ((await killAll(session, condition)) === 0) return;
    await sleep(pollMs);
  }
  throw new Error("Sessions of a dropped account do not end.");
}

/** Ends sessions that this condition on the process list selects, and returns their number. */
export async function killAll(session: Session, condition: string, ...values: string[]): Promise<number> {
  const rows = await session.rows<{ id: string }>(
    `SELECT id FROM performance_schema.processlist WHERE ${condition} AND id <> CONNECTION_ID()
       AND id IN (SELECT t.processlist_id FROM performance_schema.threads t WHERE ${isSessionSql("t")})`,
    values,
  );
  for (const { id } of rows) {
    try {
      await session.rows(`KILL ${Number(id)}`);
    } catch (error) {
      // ER_NO_SUCH_THREAD: the session ended by itself.
      if (numberOf(error) !== 1094) throw error;
    }
  }
  return rows.length;
}
