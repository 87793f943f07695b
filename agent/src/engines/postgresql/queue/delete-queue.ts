import type { Session } from "../session.ts";
import { refusing } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface Deletion {
  /** `gone`: the name is free. `purging`: call again. `waiting`: call again later, open transactions hold messages of it. */
  readonly state: "gone" | "purging" | "waiting";
  /** Messages, ready or dead, that this call has deleted. */
  readonly purged: number;
}

const batch = 10_000;

/** Transactions that wrote to the table of messages and began to before the barrier; prepared ones have no backend. */
const openBefore = `SELECT EXISTS (
  SELECT FROM pg_locks t JOIN pg_locks x ON x.virtualtransaction = t.virtualtransaction
  WHERE t.locktype = 'relation' AND t.relation = '${schema}.messages'::regclass AND t.mode = 'RowExclusiveLock'
    AND t.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock' AND age(x.transactionid) > age($1::xid8::xid)) AS open`;

/**
 * Deletes the queue of this id, which takes no message from the first call on, and its messages by 10,000 in transactions of
 * their own, so many as `steps` says. The name is free when none is left and no transaction is open that could still bring
 * one: a new queue of the name starts empty. An id without a queue is gone.
 */
export function deleteQueue(
  session: Session,
  { id, steps = 10 }: { readonly id: string; readonly steps?: number },
): Promise<Deletion> {
  return refusing(async () => {
    await session.rows(
      `UPDATE ${schema}.queues SET deleted_at = clock_timestamp(), updated_at = clock_timestamp()
       WHERE id = $1 AND deleted_at IS NULL`,
      [id],
    );
    // A transaction of its own, after the deletion is committed: every later one sees the deletion.
    await session.rows(
      `UPDATE ${schema}.queues SET purge_barrier = pg_current_xact_id()
       WHERE id = $1 AND purge_barrier IS NULL`,
      [id],
    );
    const [queue] = await session.rows<{ name: string; purge_barrier: string; purged_at: Date | null }>(
      `SELECT name, purge_barrier, purged_at FROM ${schema}.queues WHERE id = $1`,
      [id],
    );
    if (queue === undefined || queue.purged_at !== null) return { state: "gone", purged: 0 };
    const [writers] = await session.rows<{ open: boolean }>(openBefore, [queue.purge_barrier]);
    let purged = 0;
    for (const dead of [false, true]) {
      for (let step = 0; ; step += 1) {
        if (step === steps) return { state: "purging", purged };
        const [row] = await session.rows<{ n: string }>(`SELECT ${schema}.purge($1, $2, $3) AS n`, [
          queue.name,
          dead,
          batch,
        ]);
        purged += Number(row?.n);
        if (Number(row?.n) < batch) break;
      }
    }
    if (writers?.open === true) return { state: "waiting", purged };
    // A row that somebody has locked was left out.
    const [done] = await session.rows(
      `UPDATE ${schema}.queues q SET purged_at = clock_timestamp() WHERE id = $1
       AND NOT EXISTS (SELECT FROM ${schema}.messages m WHERE m.queue_name = q.name)
       AND NOT EXISTS (SELECT FROM ${schema}.dead_messages d WHERE d.queue_name = q.name) RETURNING 1`,
      [id],
    );
    return { state: done === undefined ? "waiting" : "gone", purged };
  });
}
