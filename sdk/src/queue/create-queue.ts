import { createHttpBackend, type QueueClient } from "./http-backend.ts";
import type { Queryable, Queue } from "./queue-types.ts";
import { createSqlBackend } from "./sql-backend.ts";
import { startWorker } from "./worker.ts";

/** A queue of the database that the pool leads to. */
export interface SqlQueueOptions {
  /** Such as a `pg.Pool`; a worker uses two of its connections. */
  readonly pool: Queryable;
  readonly queue: string;
}

/** A queue by the API; the client is one of `@holdfast/sdk`. */
export interface HttpQueueOptions {
  readonly client: QueueClient;
  /** Id of the service. */
  readonly service: string;
  readonly queue: string;
}

/** Sends nothing by itself: a queue that is not there shows when it is used. */
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
