/** Runs statements with values: a `pg.Pool`, a `pg.Client`, a transaction's client. */
export interface Queryable {
  query(text: string, values: unknown[]): Promise<{ readonly rows: Record<string, unknown>[] }>;
}

/** A message in the hands of a handler. */
export interface Message<P = unknown> {
  readonly id: string;
  readonly payload: P;
  /** 1 for the first claim. */
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
}

export interface EnqueueOptions {
  /** 0 to 43200; 0 when left out. */
  readonly delaySeconds?: number;
  /**
   * The client of a transaction of the caller: the messages are there when it commits, and never were when it does not.
   * Only for a queue that is reached over SQL.
   */
  readonly within?: Queryable;
}

/** Keep the message for no further attempt: it is dead at once. */
export class Discard extends Error {
  override readonly name = "Discard";
}

/** Reason of a handler's signal: another worker may have the message by now. */
export class ClaimLost extends Error {
  override readonly name = "ClaimLost";
}

/** Reason of a handler's signal: it had `timeoutSeconds` and went on. Its message is nacked. */
export class HandlerTimedOut extends Error {
  override readonly name = "HandlerTimedOut";
}

/** What a worker did; each message that it claimed is counted once. */
export interface WorkTally {
  /** Done, and gone from the queue. */
  readonly acked: number;
  /** Given back after a failure, discarded, or not begun when the worker was stopped. */
  readonly nacked: number;
  /** The claim had ended, or may have, before the outcome was written: another worker gets the message again. */
  readonly lost: number;
}

/** What a handler has beside the message. */
export interface HandlerContext {
  /** Aborted when the claim is lost or the time is over. */
  readonly signal: AbortSignal;
}

export type Handler<P> = (message: Message<P>, context: HandlerContext) => unknown;

export interface WorkOptions {
  /** Handlers at a time; 10 when left out. */
  readonly concurrency?: number;
  /**
   * Messages of a claim, 1 to 1000 (100 over HTTP); as many as `concurrency` when left out. One less is claimed ahead
   * at most.
   */
  readonly batch?: number;
  /**
   * How long a claim is kept without a sign of life, 1 to 43200; the queue's when left out. Extended at a third of it.
   */
  readonly visibilitySeconds?: number;
  /**
   * Seconds until the next attempt, after this many; 2, 4, 8 up to 900 when left out. A fifth is added or taken at
   * random.
   */
  readonly backoff?: (attemptCount: number) => number;
  /** Longest that a handler may take; 43200 when left out. */
  readonly timeoutSeconds?: number;
  /** Stops the worker, as `stop` does. */
  readonly signal?: AbortSignal;
  /** Signals of the process that stop the worker; SIGTERM when left out. */
  readonly stopOn?: readonly string[];
  /** Called with errors that are retried: of the connection, or of a handler. */
  readonly onError?: (error: unknown) => void;
}

/** A worker that was begun. */
export interface Worker {
  /** Claims nothing more, returns messages that no handler has begun, and waits for the running handlers. */
  stop(): Promise<WorkTally>;
  /** Resolves when it has been stopped; rejects when the queue is not there or not allowed. */
  readonly finished: Promise<WorkTally>;
  readonly tally: WorkTally;
}

/** A queue, over SQL or over HTTP. */
export interface Queue<P extends object = Record<string, unknown>> {
  /** Ids of the messages, in the order of the payloads. Resolves when they are stored. */
  enqueue(payloads: readonly P[], options?: EnqueueOptions): Promise<string[]>;
  /** Begins to work; a handler that throws gives its message back. */
  work(handler: Handler<P>, options?: WorkOptions): Worker;
}
