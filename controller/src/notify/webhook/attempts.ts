import { setTimeout as delay } from "node:timers/promises";
import { backOffMs } from "@holdfast/common/back-off.ts";
import { inBackground } from "@holdfast/common/background.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Deliveries, EndedAttempt, WaitingDelivery } from "./deliveries.ts";
import type { Receiver } from "./receiver.ts";
import { waitAfterMs } from "./retry-policy.ts";

export interface AttemptDeps {
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Makes one attempt of a delivery and resolves to its outcome. Throws only if the signal aborts. */
export async function attemptDelivery(
  receiver: Receiver,
  { id: deliveryId, event, attempt }: WaitingDelivery,
  { clock, newId }: AttemptDeps,
  signal: AbortSignal,
): Promise<EndedAttempt> {
  const beganAt = clock.now();
  const began = clock.monotonicMs();
  const { retryAfterMs, ...outcome } = await receiver.send(event, signal);
  const endedAt = clock.now();
  const wait = waitAfterMs(receiver.retryPolicy, attempt, retryAfterMs);
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

/** Records ended attempts; concurrent ones share a statement. */
export interface AttemptRecorder {
  /**
   * Stores the attempt in the history. Resolves to the time since which the endpoint fails, or null if it does not.
   * Rejects on stop.
   */
  record(attempt: EndedAttempt): Promise<number | null>;
}

interface Waiting {
  readonly attempt: EndedAttempt;
  readonly done: PromiseWithResolvers<number | null>;
}

const batchMax = 500;

/**
 * Creates a recorder that retries while the history is unavailable. The limit of attempts in flight bounds the queue.
 */
export function createAttemptRecorder(deps: {
  readonly deliveries: Pick<Deliveries, "record">;
  readonly random: () => number;
  readonly log: Log;
  readonly signal: AbortSignal;
}): AttemptRecorder {
  const { deliveries, random, log, signal } = deps;
  let waiting: Waiting[] = [];
  let isWriting = false;

  async function write(): Promise<void> {
    if (isWriting) return;
    isWriting = true;
    while (waiting.length > 0) {
      const batch = waiting.slice(0, batchMax);
      waiting = waiting.slice(batch.length);
      try {
        const failing = await persist(batch.map(({ attempt }) => attempt));
        for (const { attempt, done } of batch) done.resolve(failing.get(attempt.webhookId) ?? null);
      } catch (error) {
        for (const { done } of batch) done.reject(error);
      }
    }
    // There is no `await` after the last check of the queue, so later attempts start a new run.
    isWriting = false;
  }

  async function persist(attempts: readonly EndedAttempt[]): Promise<ReadonlyMap<string, number>> {
    for (let failures = 0; ; ) {
      signal.throwIfAborted();
      try {
        return await deliveries.record(attempts);
      } catch (error) {
        failures += 1;
        if (failures === 1) log.warn("attempts not recorded", { error: String(error) });
        await delay(backOffMs(failures, random, { maxMs: 5_000 }), undefined, { signal });
      }
    }
  }

  return {
    record(attempt) {
      const done = Promise.withResolvers<number | null>();
      waiting.push({ attempt, done });
      inBackground(log, "attempts of deliveries", write());
      return done.promise;
    },
  };
}
