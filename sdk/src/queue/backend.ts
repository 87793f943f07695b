import type { ErrorText } from "./values.ts";

/** A worker's claim of a message. */
export interface Claim {
  readonly id: string;
  /** Proof of the claim: the worker id over SQL, the receipt over HTTP. */
  readonly token: string;
}

export interface Claimed extends Claim {
  readonly payload: unknown;
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
}

export interface ClaimRequest {
  readonly max: number;
  readonly visibilitySeconds: number;
  /** Messages that were handled since the last claim. */
  readonly acks: readonly Claim[];
}

export interface ClaimAnswer {
  readonly messages: readonly Claimed[];
  /** Ids of acks whose claim had expired. */
  readonly lost: ReadonlySet<string>;
}

export interface NackRequest {
  readonly delaySeconds: number;
  /** Absent for a text that the queue refused. */
  readonly error?: ErrorText;
  readonly discard: boolean;
}

/**
 * Access to a queue, over SQL or HTTP. Methods that change messages return the ids of messages whose claim was lost.
 * Seconds may have a fraction, which a backend without fractions rounds up.
 */
export interface Backend {
  /** Maximum number of messages of one claim. */
  readonly claimMax: number;
  enqueue(payloads: readonly object[], delaySeconds: number, within: unknown): Promise<string[]>;
  /** The queue's own visibility timeout in seconds. */
  visibilitySeconds(): Promise<number>;
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  ack(claims: readonly Claim[]): Promise<ReadonlySet<string>>;
  nack(claim: Claim, request: NackRequest): Promise<ReadonlySet<string>>;
  extend(claims: readonly Claim[], seconds: number): Promise<ReadonlySet<string>>;
  /** Returns messages that no handler has started. Over SQL their attempt does not count. */
  release(claims: readonly Claim[]): Promise<ReadonlySet<string>>;
  /** True for an error that a retry cannot solve: the queue is absent, or access is denied. */
  isPermanent(error: unknown): boolean;
  /** True for an error about a value of the request, such as a text that the database's encoding does not have. */
  isInvalid(error: unknown): boolean;
}
