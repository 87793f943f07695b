import type pg from "pg";
import { PgBoss } from "pg-boss";
import { chunks, countOf, payload, type QueuePeer } from "./queue-peer.ts";

const queue = "work";
const waiting = "pgboss.job WHERE name = 'work' AND state < 'completed'";

/** pg-boss, with batches of this size fetched and completed. */
export async function pgBossQueue(pool: pg.Pool, batchSize: number): Promise<QueuePeer> {
  const boss = new PgBoss({
    db: { executeSql: (text: string, values: unknown[]) => pool.query(text, values as never) },
    schedule: false,
    supervise: false,
  });
  boss.on("error", (error: unknown) => console.error(error));
  await boss.start();
  await boss.createQueue(queue);
  return {
    name: `pg-boss by ${batchSize}`,
    async fill(count) {
      for (const length of chunks(count))
        await boss.insert(
          queue,
          Array.from({ length }, () => ({ data: payload })),
        );
    },
    async drain() {
      for (let done = 0; ; ) {
        const jobs = await boss.fetch(queue, { batchSize });
        if (jobs.length === 0) return done;
        await boss.complete(
          queue,
          jobs.map(({ id }) => id),
        );
        done += jobs.length;
      }
    },
    left: () => countOf(pool, waiting),
    close: () => boss.stop({ graceful: false }),
  };
}
