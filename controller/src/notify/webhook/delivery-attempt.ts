import type { Clock } from "@holdfast/common/clock.ts";
import type { EndedAttempt } from "./attempt-record.ts";
import type { WaitingDelivery } from "./deliveries.ts";
import type { Receiver } from "./receiver.ts";
import { waitAfterMs } from "./retry-policy.ts";

export interface AttemptDeps {
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Tries a delivery once and resolves with what came of it. Throws only when the signal aborts. */
export async function attemptDelivery(
  receiver: Receiver,
  { id: deliveryId, event, attempt }: WaitingDelivery,
  { clock, newId }: AttemptDeps,
  signal: AbortSignal,
): Promise<EndedAttempt> {
  const beganAt = clock.now();
  const began = clock.monotonicMs();
  const outcome = await receiver.send(event, signal);
  const endedAt = clock.now();
  const wait = waitAfterMs(receiver.retryPolicy, attempt);
  const delivered = outcome.errorMessage === null;
  return {
    ...outcome,
    id: newId(),
    deliveryId,
    webhookId: receiver.id,
    eventId: event.id,
    eventOccurredAt: event.occurredAt,
    eventType: event.type,
    attempt,
    deliveredAt: delivered ? endedAt : null,
    beganAt,
    durationMs: clock.monotonicMs() - began,
    nextDueAt: delivered || wait === undefined ? null : endedAt + wait,
  };
}
