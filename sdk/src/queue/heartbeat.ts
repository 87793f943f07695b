import type { Backend } from "./backend.ts";
import type { Hand, InHand } from "./hand.ts";
import { ClaimLost } from "./queue-types.ts";

/**
 * Extends the claims of messages in hand, each third of the visibility time; a message whose claim has ended is lost.
 * `onError` gets what the next round may mend, `fail` an error of `onError` itself.
 */
export function startHeartbeat(
  backend: Backend,
  hand: Hand,
  visibilitySeconds: number,
  { onError, fail }: { readonly onError: (error: unknown) => void; readonly fail: (error: unknown) => void },
): { end(): void } {
  let isBusy = false;

  async function beat(): Promise<void> {
    const kept = hand.held().filter(({ stage }) => stage === "waiting" || stage === "running");
    const begun = performance.now();
    try {
      const lost = await backend.extend(kept, visibilitySeconds);
      for (const message of kept) {
        if (!lost.has(message.id)) message.keptUntil = begun + visibilitySeconds * 1000;
        // One whose outcome was sent meanwhile is gone for that reason.
        else if (message.stage === "waiting" || message.stage === "running") lose(message);
      }
    } catch (error) {
      onError(error);
      for (const message of kept) if (message.keptUntil < performance.now()) lose(message);
    }
  }

  function lose(message: InHand): void {
    hand.end(message, "lost");
    message.abort?.abort(new ClaimLost(`message ${message.id} is not this worker's any more`));
  }

  const timer = setInterval(
    () => {
      if (isBusy || hand.size === 0) return;
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
