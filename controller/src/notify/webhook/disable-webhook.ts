import type { Clock } from "@holdfast/common/clock.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { Deliveries } from "./deliveries.ts";
import type { EndpointFailure } from "./receiver.ts";
import { webhookKind, type WebhookObject } from "./webhook.ts";

/** Duration of failures after which an endpoint is disabled until a user enables it again. */
export const disableAfterMs = 5 * 86_400_000;

export interface DisableWebhookDeps {
  readonly begin: () => UnitOfWork;
  readonly webhooks: Collection<WebhookObject>;
  readonly deliveries: Pick<Deliveries, "forget">;
  readonly clock: Clock;
}

/** Disables the endpoint, with the event `webhook.disabled`, if it responded with 410 or has failed for 5 days. */
export async function disableIfFailing(
  webhookId: string,
  { since, refusesDeliveries }: EndpointFailure,
  { begin, webhooks, deliveries, clock }: DisableWebhookDeps,
  signal: AbortSignal,
): Promise<void> {
  const now = clock.now();
  if (!refusesDeliveries && now - since < disableAfterMs) return;
  await retryConflict(signal, async () => {
    const before = await webhooks.getCurrent(webhookId, signal);
    if (before === undefined || !before.object.spec.active) return;
    const { metadata, spec, status } = before.object;
    const unit = begin();
    unit.update(webhookKind, before, {
      metadata: nextMetadata(metadata, now),
      spec: { ...spec, active: false },
      status: { ...status, disabledAt: now },
    });
    unit.event({
      type: "webhook.disabled",
      organizationId: metadata.organizationId,
      objectKind: "webhook",
      objectId: webhookId,
      data: {
        webhook_id: webhookId,
        url: spec.url,
        reason: refusesDeliveries ? "gone" : "failing",
        failing_since: new Date(since).toISOString(),
      },
    });
    await unit.commit(signal);
  });
  await deliveries.forget(webhookId);
}
