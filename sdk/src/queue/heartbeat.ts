import type { Backend } from "./backend.ts";
import type { InFlightMessages, InFlightMessage } from "./in-flight.ts";
import { ClaimLost } from "./queue-types.ts";

/**
 * Extends the claims of messages at each third of the visibility timeout. A message whose claim has expired is lost.
 * `onError` receives errors that the next round may recover from; `fail` receives an error of `onError` itself.
 */
export function startHeartbeat(
  backend: Backend,
  inFlight: InFlightMessages,
  visibilitySeconds: number,
  { onError, fail }: { readonly onError: (error: unknown) => void; readonly fail: (error: unknown) => void },
): { end(): void } {
  let isBusy = false;

  async function beat(): Promise<void> {
    const claimed = inFlight.messages().filter(({ stage }) => stage === "waiting" || stage === "running");
    const startedAt = performance.now();
    try {
      const lost = await backend.extend(claimed, visibilitySeconds);
      for (const message of claimed) {
        if (!lost.has(message.id)) message.claimedUntil = startedAt + visibilitySeconds * 1000;
        // A message that was settled during the call has no claim for that reason, so it is not lost.
        else if (message.stage === "waiting" || message.stage === "running") lose(message);
      }
    } catch (error) {
      onError(error);
      for (const message of claimed) if (message.claimedUntil < performance.now()) lose(message);
    }
  }

  function lose(message: InFlightMessage): void {
    inFlight.end(message, "lost");
    message.abort?.abort(new ClaimLost(`this worker's claim of message ${message.id} has ended`));
  }

  const timer = setInterval(
    () => {
      if (isBusy || inFlight.size === 0) return;
      isBusy = true;
      beat()
        .catch(fail)
        .finally(() => {
          isBusy = false;
        });
    },
    (visibilitySeconds * 1000) / 3,
  );
  return { end: () => clearInterval(timer) };
}
