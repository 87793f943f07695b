import type { Session } from "../session.ts";
import { mapRefusals } from "./queue-refused.ts";
import { schema } from "./schema/names.ts";

export interface Deletion {
  /**
   * `deleted`: the name is free. `purging`: call again. `waiting`: call again later, since open transactions may still
   * add messages.
   */
  readonly state: "deleted" | "purging" | "waiting";
  /** Number of messages, dead ones included, that this call deleted. */
  readonly purged: number;
}

const batch = 10_000;

/**
 * Transactions that wrote messages and began before the barrier. Prepared transactions have no backend, so pg_locks is
 * read.
 */
const openBefore = `SELECT EXISTS (
  SELECT FROM pg_locks t JOIN pg_locks x ON x.virtualtransaction = t.virtualtransaction
  WHERE t.locktype = 'relation' AND t.relation = '${schema}.messages'::regclass AND t.mode = 'RowExclusiveLock'
    AND t.database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND x.locktype = 'transactionid' AND x.mode = 'ExclusiveLock' AND age(x.transactionid) > age($1::xid8::xid)) AS open`;

/**
 * Deletes a queue and its messages. From the first call on the queue accepts no messages. Messages are deleted in
 * transactions of 10,000, at most `steps` of them for each table. The name is free once none remains and no open
 * transaction can add one, so that a new queue with the name starts empty. An unknown id counts as deleted.
 */
export function deleteQueue(
  session: Session,
  { id, steps = 10 }: { readonly id: string; readonly steps?: number },
): Promise<Deletion> {
  return mapRefusals(async () => {
    await session.rows(
      `UPDATE ${schema}.queues SET deleted_at = clock_timestamp(), updated_at = clock_timestamp()
       WHERE id = $1 AND deleted_at IS NULL`,
      [id],
    );
    // A separate transaction after the commit of the deletion: every later one sees the deletion.
    await session.rows(
      `UPDATE ${schema}.queues SET purge_barrier = pg_current_xact_id()
       WHERE id = $1 AND purge_barrier IS NULL`,
      [id],
    );
    const [queue] = await session.rows<{ name: string; purge_barrier: string; purged_at: Date | null }>(
      `SELECT name, purge_barrier, purged_at FROM ${schema}.queues WHERE id = $1`,
      [id],
    );
    if (queue === undefined || queue.purged_at !== null) return { state: "deleted", purged: 0 };
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
    // Locked rows were skipped, so check that none remains.
    const [purgedQueue] = await session.rows(
      `UPDATE ${schema}.queues q SET purged_at = clock_timestamp() WHERE id = $1
       AND NOT EXISTS (SELECT FROM ${schema}.messages m WHERE m.queue_name = q.name)
       AND NOT EXISTS (SELECT FROM ${schema}.dead_messages d WHERE d.queue_name = q.name) RETURNING 1`,
      [id],
    );
    return { state: purgedQueue === undefined ? "waiting" : "deleted", purged };
  });
}
