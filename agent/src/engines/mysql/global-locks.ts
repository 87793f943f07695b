import { isPlatformNameSql } from "./platform-accounts.ts";
import { numberOf, type Session } from "./session.ts";

/** Watches for users' read locks on all databases (FLUSH TABLES WITH READ LOCK), which block every write. */
export interface GlobalLocks {
  /**
   * Returns a sentence for users that names the account with such a lock; undefined if there is no lock. Ends the
   * session that has held the lock for a minute.
   */
  check(session: Session): Promise<string | undefined>;
}

const limitMs = 60_000;

/** `now` is a monotonic clock in milliseconds. */
export function createGlobalLocks(now: () => number): GlobalLocks {
  /** Time of the first observation of each session with a lock, by its id. */
  let since = new Map<string, number>();

  return {
    async check(session) {
      const holders = await session.rows<{ id: string; name: string }>(
        `SELECT DISTINCT t.processlist_id AS id, t.processlist_user AS name
         FROM performance_schema.metadata_locks l JOIN performance_schema.threads t ON t.thread_id = l.owner_thread_id
         WHERE l.object_type = 'GLOBAL' AND l.lock_type = 'SHARED' AND l.lock_duration = 'EXPLICIT'
           AND l.lock_status = 'GRANTED'
           AND NOT ${isPlatformNameSql("t.processlist_user")}`,
      );
      since = new Map(holders.map(({ id }) => [id, since.get(id) ?? now()]));
      for (const { id } of holders) if (now() - (since.get(id) ?? now()) >= limitMs) await end(session, id);
      const [first] = holders;
      if (first === undefined) return undefined;
      return `${first.name} locks all databases for reading. Its session is terminated after a minute.`;
    },
  };
}

async function end(session: Session, id: string): Promise<void> {
  try {
    await session.rows(`KILL ${Number(id)}`);
  } catch (error) {
    // ER_NO_SUCH_THREAD: the session ended by itself.
    if (numberOf(error) !== 1094) throw error;
  }
}
