import { createHttpBackend, type QueueClient } from "./http-backend.ts";
import type { Queryable, Queue } from "./queue-types.ts";
import { createSqlBackend } from "./sql-backend.ts";
import { startWorker } from "./worker.ts";

/** A queue in the database of the pool, over SQL. */
export interface SqlQueueOptions {
  /** A pool such as `pg.Pool`; a worker uses two of its connections. */
  readonly pool: Queryable;
  readonly queue: string;
}

/** A queue over HTTP, by a client of `@holdfast/sdk`. */
export interface HttpQueueOptions {
  readonly client: QueueClient;
  /** Id of the service. */
  readonly service: string;
  readonly queue: string;
}

/** Opens a queue. Sends nothing by itself: an absent queue is an error at its first use. */
export function createQueue<P extends object = Record<string, unknown>>(
  options: SqlQueueOptions | HttpQueueOptions,
): Queue<P> {
  const backend =
    "pool" in options
      ? createSqlBackend(options.pool, options.queue)
      : createHttpBackend(options.client, options.service, options.queue);
  return {
    enqueue: async (payloads, { delaySeconds = 0, within } = {}) =>
      payloads.length === 0 ? [] : backend.enqueue(payloads, delaySeconds, within),
    work: (handler, workOptions) => startWorker<P>(backend, handler, workOptions),
  };
}
