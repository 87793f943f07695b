/** Runs SQL statements with values: a `pg.Pool`, a `pg.Client` or the client of a transaction. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ readonly rows: Record<string, unknown>[] }>;
}

/** A message that a handler gets. */
export interface Message<P = unknown> {
  readonly id: string;
  readonly payload: P;
  /** Number of claims so far, 1 for the first. */
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
}

export interface EnqueueOptions {
  /** Delay before the messages can be claimed, 0 (the default) to 43200. */
  readonly delaySeconds?: number;
  /**
   * The client of a transaction of the caller: the messages exist if it commits and do not if it rolls back. Only for
   * queues over SQL.
   */
  readonly within?: Queryable;
}

/** Thrown by a handler to make the message dead without further attempts. */
export class Discard extends Error {
  override readonly name = "Discard";
}

/** Reason of a handler's signal when the claim has ended: another worker may have the message. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
}

/** Reason of a handler's signal after `timeoutSeconds`. The message is nacked. */
export class HandlerTimedOut extends Error {
  override readonly name = "HandlerTimedOut";
}

/** Outcomes of the messages that a worker claimed; each message counts once. */
export interface WorkTally {
  /** Messages that were handled and removed from the queue. */
  readonly acked: number;
  /** Messages returned after a failure, discarded, or not started when the worker was stopped. */
  readonly nacked: number;
  /** Messages whose claim ended, or may have, before the outcome was written; another worker gets them again. */
  readonly lost: number;
}

/** The context of a handler's call. */
export interface HandlerContext {
  /** Aborted when the claim is lost or the timeout has passed. */
  readonly signal: AbortSignal;
}

export type Handler<P> = (message: Message<P>, context: HandlerContext) => unknown;

export interface WorkOptions {
  /** Maximum number of concurrent handlers; 10 by default. */
  readonly concurrency?: number;
  /**
   * Maximum number of messages of one claim, 1 to 1000 (100 over HTTP); `concurrency` by default. At most one message
   * less than this waits for a handler.
   */
  readonly batch?: number;
  /**
   * Visibility timeout of claims in seconds, 1 to 43200; the queue's by default. A heartbeat extends claims at each
   * third of this time.
   */
  readonly visibilitySeconds?: number;
  /**
   * Seconds until the next attempt after this number of attempts; 2, 4, 8 up to 900 by default. A random fifth is added
   * or subtracted.
   */
  readonly backoff?: (attemptCount: number) => number;
  /** Timeout of a handler in seconds; 43200 by default. */
  readonly timeoutSeconds?: number;
  /** Stops the worker, as `stop` does. */
  readonly signal?: AbortSignal;
  /** Process signals that stop the worker; SIGTERM by default. */
  readonly stopOn?: readonly string[];
  /** Called with errors of the connection and of handlers, which are retried. */
  readonly onError?: (error: unknown) => void;
}

/** A running worker. */
export interface Worker {
  /** Stops claiming, returns messages that no handler has started, and waits for running handlers. */
  stop(): Promise<WorkTally>;
  /** Resolves when the worker has stopped; rejects when the queue is absent or access is denied. */
  readonly finished: Promise<WorkTally>;
  readonly tally: WorkTally;
}

/** A queue, over SQL or over HTTP. */
export interface Queue<P extends object = Record<string, unknown>> {
  /** Stores messages and resolves to their ids, in the order of the payloads. */
  enqueue(payloads: readonly P[], options?: EnqueueOptions): Promise<string[]>;
  /** Starts a worker. A handler that throws returns its message to the queue. */
  work(handler: Handler<P>, options?: WorkOptions): Worker;
}
