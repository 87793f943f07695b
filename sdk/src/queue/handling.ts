import type { InHand } from "./hand.ts";
import { ClaimLost, Discard, type Handler, HandlerTimedOut } from "./queue-types.ts";

/** What a handler came to. */
export type Handled =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly error: unknown; readonly discard: boolean };

/** Runs the handler with one message; the time-out ends the wait for it, and aborts its signal. Never rejects. */
export async function handle<P>(handler: Handler<P>, message: InHand, timeoutMs: number): Promise<Handled> {
  const { id, attemptCount, enqueuedAt } = message;
  const context = {
    // Most handlers never ask.
    get signal() {
      message.abort ??= new AbortController();
      if (message.stage === "over" && !message.abort.signal.aborted)
        message.abort.abort(new ClaimLost(`message ${id} is not this worker's any more`));
      return message.abort.signal;
    },
  };
  try {
    const answer = handler({ id, payload: message.payload as P, attemptCount, enqueuedAt }, context);
    if (answer instanceof Promise) await within(answer, timeoutMs, message);
    return { kind: "done" };
  } catch (error) {
    return { kind: "failed", error, discard: error instanceof Discard };
  }
}

function within(answer: Promise<unknown>, timeoutMs: number, message: InHand): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const reason = new HandlerTimedOut(`no end within ${timeoutMs / 1000} s`);
      message.abort?.abort(reason);
      reject(reason);
    }, timeoutMs);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

/** At most 4 KiB, as queues keep it. */
export function textOf(error: unknown): string {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error);
  return text.slice(0, 4096).replaceAll("\0", "");
}
