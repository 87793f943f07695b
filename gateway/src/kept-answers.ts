import type { Idempotency, KeptAnswer } from "@holdfast/common/call.ts";

/** Where answers are kept for 24 hours. Those of a change are written by the change's own unit of work. */
export interface KeptAnswers {
  /** The answer given before; throws IDEMPOTENCY_KEY_REUSED when the key came with another body then. */
  find(idempotency: Idempotency, signal?: AbortSignal): Promise<KeptAnswer | undefined>;
  /** Takes room for one answer until the function that it answers is called; throws RATE_LIMITED when none is left. */
  take(idempotency: Idempotency): () => void;
  /** Keeps an answer; the first one of a key stays. */
  keep(idempotency: Idempotency, answer: KeptAnswer, signal?: AbortSignal): Promise<void>;
}
