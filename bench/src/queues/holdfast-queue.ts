import { createQueue } from "@holdfast/sdk/queue/index.ts";
import type pg from "pg";
import { chunks, countOf, payload, type QueuePeer } from "./queue-peer.ts";

/** The SDK's worker over SQL. */
export function holdfastQueue(
  pool: pg.Pool,
  queueName: string,
  { concurrency, batch }: { readonly concurrency: number; readonly batch: number },
): QueuePeer {
  const queue = createQueue({ pool, queue: queueName });
  const waiting = `mdb_queue.messages WHERE queue_name = '${queueName}'`;
  return {
    name: `worker of the SDK by ${batch}`,
    async fill(count) {
      for (const length of chunks(count)) await queue.enqueue(Array.from({ length }, () => payload));
    },
    async drain() {
      const count = await countOf(pool, waiting);
      let done = 0;
      const last = Promise.withResolvers<void>();
      const worker = queue.work(
        () => {
          done += 1;
          if (done === count) last.resolve();
        },
        { concurrency, batch },
      );
      await last.promise;
      return (await worker.stop()).acked;
    },
    left: () => countOf(pool, waiting),
    close: async () => undefined,
  };
}

/** The statements of the users' documentation, each a round trip: claim a hundred, acknowledge a hundred. */
export function naiveQueue(pool: pg.Pool, queueName: string, batch: number): QueuePeer {
  const base = holdfastQueue(pool, queueName, { concurrency: 1, batch });
  return {
    ...base,
    name: `statements of users by ${batch}`,
    async drain() {
      for (let done = 0; ; ) {
        const worker = `naive-${done}`;
        const { rows } = await pool.query<{ id: string }>(
          `WITH taken AS MATERIALIZED (
             SELECT id FROM mdb_queue.messages WHERE queue_name = $1 AND visible_at <= now() AND attempt_count < max_attempts
             ORDER BY id LIMIT $2 FOR UPDATE SKIP LOCKED
           ) UPDATE mdb_queue.messages m SET visible_at = now() + interval '30 s', attempt_count = attempt_count + 1, claimed_by = $3
             FROM taken WHERE m.id = taken.id RETURNING m.id`,
          [queueName, batch, worker],
        );
        if (rows.length === 0) return done;
        const { rowCount } = await pool.query(
          "DELETE FROM mdb_queue.messages WHERE id = ANY ($1) AND queue_name = $2 AND claimed_by = $3",
          [rows.map(({ id }) => id), queueName, worker],
        );
        done += rowCount ?? 0;
      }
    },
  };
}
