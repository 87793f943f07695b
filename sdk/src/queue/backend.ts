/** A message with the receipt of this claim. */
export interface Held {
  readonly id: string;
  /** Worker id of the claim, or receipt. */
  readonly token: string;
}

export interface Claimed extends Held {
  readonly payload: unknown;
  readonly attemptCount: number;
  readonly enqueuedAt: Date;
}

export interface ClaimRequest {
  readonly most: number;
  readonly visibilitySeconds: number;
  /** Done since the last claim. */
  readonly acks: readonly Held[];
}

export interface ClaimAnswer {
  readonly messages: readonly Claimed[];
  /** Ids of acks whose claim had ended. */
  readonly lost: ReadonlySet<string>;
}

export interface NackRequest {
  readonly delaySeconds: number;
  readonly error: string;
  readonly discard: boolean;
}

/** One way to a queue. Methods that change messages answer the ids of messages whose claim was lost. */
export interface Backend {
  /** Largest batch of one claim. */
  readonly mostClaimed: number;
  enqueue(payloads: readonly object[], delaySeconds: number, within: unknown): Promise<string[]>;
  /** Seconds of the queue itself. */
  visibilitySeconds(): Promise<number>;
  claim(request: ClaimRequest): Promise<ClaimAnswer>;
  ack(held: readonly Held[]): Promise<ReadonlySet<string>>;
  nack(held: Held, request: NackRequest): Promise<ReadonlySet<string>>;
  extend(held: readonly Held[], seconds: number): Promise<ReadonlySet<string>>;
  /** Gives messages back that nothing was done with. */
  release(held: readonly Held[]): Promise<ReadonlySet<string>>;
  /** True for an error that stays: the queue is not there, or not allowed. */
  isFinal(error: unknown): boolean;
}
