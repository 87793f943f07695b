import type { Clock } from "@holdfast/common/clock.ts";
import type { EgressClient } from "../egress/egress-client.ts";
import { EgressFailure } from "../egress/egress-failure.ts";
import type { EndedAttempt } from "../history/attempt-record.ts";
import type { WaitingDelivery } from "../history/deliveries.ts";
import { envelopeOf } from "./envelope.ts";
import { attemptMs, waitAfterMs } from "./retry-policy.ts";
import { signatureHeaders } from "./signature.ts";
import type { WebhookObject } from "./webhook.ts";
import type { createSecretsOf } from "./webhook-secret.ts";

export interface AttemptDeps {
  readonly egress: Pick<EgressClient, "post">;
  readonly secretsOf: ReturnType<typeof createSecretsOf>;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** Tries a delivery once and resolves with what came of it. Throws only when the signal aborts. */
export async function attemptDelivery(
  webhook: WebhookObject,
  { id: deliveryId, event, attempt }: WaitingDelivery,
  { egress, secretsOf, clock, newId }: AttemptDeps,
  signal: AbortSignal,
): Promise<EndedAttempt> {
  const beganAt = clock.now();
  const began = clock.monotonicMs();
  const body = envelopeOf(event);
  const timestampS = Math.floor(beganAt / 1_000);
  const signatures = signatureHeaders({ id: event.id, body, timestampS }, secretsOf(webhook, beganAt));
  const headers = { "content-type": "application/json", "user-agent": "Holdfast-Webhooks/1", ...signatures };
  const outcome = await outcomeOf(egress.post(webhook.spec.url, { headers, body, deadlineMs: attemptMs, signal }));
  const endedAt = clock.now();
  const wait = waitAfterMs(webhook.spec.retryPolicy, attempt);
  const delivered = outcome.errorMessage === null;
  return {
    ...outcome,
    id: newId(),
    deliveryId,
    webhookId: webhook.metadata.id,
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

/** Any 2xx is a success and nothing else is (spec 2). No word of the endpoint's answer is kept. */
async function outcomeOf(
  answer: Promise<{ readonly status: number }>,
): Promise<Pick<EndedAttempt, "responseStatus" | "errorMessage">> {
  try {
    const { status } = await answer;
    if (status >= 200 && status < 300) return { responseStatus: status, errorMessage: null };
    const redirect = status >= 300 && status < 400 ? "; redirects are not followed" : "";
    return { responseStatus: status, errorMessage: `The endpoint answered ${status}${redirect}.` };
  } catch (error) {
    if (!(error instanceof EgressFailure)) throw error;
    return { responseStatus: null, errorMessage: error.message };
  }
}
