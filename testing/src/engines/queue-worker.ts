import pg from "pg";
import { createQueue } from "@holdfast/sdk/queue/index.ts";

/**
 * A worker in a separate process, which a test kills: `node queue-worker.ts`, with the configuration of a pg.Pool as
 * JSON in HOLDFAST_POOL and the queue's name in HOLDFAST_QUEUE. Each processed message leaves a row in `effects`, with
 * the end of its visibility timeout.
 */
const { HOLDFAST_POOL = "{}", HOLDFAST_QUEUE = "" } = process.env;
const pool = new pg.Pool({ ...(JSON.parse(HOLDFAST_POOL) as pg.PoolConfig), max: 3 });
pool.on("error", () => undefined);

const worker = createQueue({ pool, queue: HOLDFAST_QUEUE }).work(
  ({ id, attemptCount }) =>
    pool.query(
      `INSERT INTO effects SELECT id, attempt_count, visible_at FROM mdb_queue.messages WHERE id = $1 AND attempt_count = $2`,
      [id, attemptCount],
    ),
  { concurrency: 5, batch: 10 },
);
await worker.finished;
await pool.end();
