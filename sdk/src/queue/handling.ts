import type { InFlightMessage } from "./in-flight.ts";
import { ClaimLost, Discard, type Handler, HandlerTimedOut } from "./queue-types.ts";

/** The result of a handler. */
export type Handled =
  | { readonly kind: "done" }
  | { readonly kind: "failed"; readonly error: unknown; readonly discard: boolean };

/** Runs the handler for one message. A timeout ends the wait and aborts the handler's signal. Never rejects. */
export async function handle<P>(handler: Handler<P>, message: InFlightMessage, timeoutMs: number): Promise<Handled> {
  const { id, attemptCount, enqueuedAt } = message;
  const context = {
    // Created on first use: most handlers never read it.
    get signal() {
      message.abort ??= new AbortController();
      if (message.stage === "over" && !message.abort.signal.aborted)
        message.abort.abort(new ClaimLost(`this worker's claim of message ${id} has ended`));
      return message.abort.signal;
    },
  };
  try {
    const returned = handler({ id, payload: message.payload as P, attemptCount, enqueuedAt }, context);
    if (returned instanceof Promise) await within(returned, timeoutMs, message);
    return { kind: "done" };
  } catch (error) {
    return { kind: "failed", error, discard: error instanceof Discard };
  }
}

function within(returned: Promise<unknown>, timeoutMs: number, message: InFlightMessage): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      const reason = new HandlerTimedOut(`the handler did not finish within ${timeoutMs / 1000} s`);
      message.abort?.abort(reason);
      reject(reason);
    }, timeoutMs);
    returned.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
