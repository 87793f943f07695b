import type { HandlerContext } from "@connectrpc/connect";

/** Limits the rate of gRPC calls without a credential, by source. Both methods throw the caller's answer. */
export interface StreamPace {
  /** Before a call, and before each further message of one. */
  take(context: HandlerContext): void;
  /** The place of a stream, until the function that it answers is called. */
  stream(context: HandlerContext): () => void;
}
