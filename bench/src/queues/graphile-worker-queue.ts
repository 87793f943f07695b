import { Logger, makeWorkerUtils, run } from "graphile-worker";
import type pg from "pg";
import { chunks, countOf, payload, type QueuePeer } from "./queue-peer.ts";

const waiting = "graphile_worker._private_jobs";
const logger = new Logger(() => () => undefined);

/** graphile-worker with its documentation's settings for throughput: a local queue, batched completions. */
export async function graphileWorkerQueue(
  pool: pg.Pool,
  { concurrency, localQueue }: { readonly concurrency: number; readonly localQueue: number },
): Promise<QueuePeer> {
  const utils = await makeWorkerUtils({ pgPool: pool, logger });
  await utils.migrate();
  return {
    name: `graphile-worker, localQueue ${localQueue}`,
    async fill(count) {
      for (const length of chunks(count))
        await utils.addJobs(Array.from({ length }, () => ({ identifier: "work", payload })));
    },
    async drain() {
      const count = await countOf(pool, waiting);
      let done = 0;
      const last = Promise.withResolvers<void>();
      const runner = await run({
        pgPool: pool,
        logger,
        noHandleSignals: true,
        preset: {
          worker: {
            concurrentJobs: concurrency,
            localQueue: { size: localQueue },
            completeJobBatchDelay: 0,
            failJobBatchDelay: 0,
          },
        },
        taskList: {
          work: async () => {
            done += 1;
            if (done === count) last.resolve();
          },
        },
      });
      await last.promise;
      await runner.stop();
      return done;
    },
    left: () => countOf(pool, waiting),
    close: async () => utils.release(),
  };
}
