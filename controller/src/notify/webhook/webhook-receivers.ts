import type { Clock } from "@holdfast/common/clock.ts";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { type Collection, ofOrganization } from "#kernel/store/collection.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { Deliveries } from "./deliveries.ts";
import type { EndpointFailure, Receivers } from "./receiver.ts";
import { envelopeOf, sendSigned } from "./send-signed.ts";
import { createSecretsOf, matchesEvent, webhookKind, type WebhookObject } from "./webhook.ts";

interface Deps extends DisableWebhookDeps {
  readonly egress: Pick<EgressClient, "post">;
  readonly sealer: Sealer;
  /** True if events of this type go only to endpoints whose filter names the type. */
  readonly isOptIn: (type: string) => boolean;
}

/** Webhook endpoints as receivers of events. */
export function createWebhookReceivers(deps: Deps): Receivers {
  const { webhooks, egress, clock } = deps;
  const secretsOf = createSecretsOf(deps.sealer);

  return {
    get(id) {
      const webhook = webhooks.get(id)?.object;
      if (webhook === undefined) return undefined;
      const { url, active, retryPolicy } = webhook.spec;
      const { organizationId } = webhook.metadata;
      return {
        id,
        organizationId,
        isActive: active,
        retryPolicy,
        send(event, signal) {
          const now = clock.now();
          const message = { id: event.id, body: envelopeOf(event), sentAt: now, secrets: secretsOf(webhook, now) };
          return sendSigned(url, message, { egress, organizationId, signal });
        },
      };
    },
    ids: () => Iterator.from(webhooks.values()).map(({ object }) => object.metadata.id),
    subscribersOf: (event) =>
      ofOrganization(webhooks, event.organizationId)
        .filter((webhook) => matchesEvent(webhook, event, deps.isOptIn))
        .map(({ metadata }) => metadata.id),
    subscribe: (onChange) => webhooks.subscribe(onChange),
    untilRevision: (revision, timeoutMs) => webhooks.untilRevision(revision, timeoutMs),
    ready: webhooks.ready,
    failing: (id, failure, signal) => disableIfFailing(id, failure, deps, signal),
  };
}

/** Duration of failures after which an endpoint is disabled until a user enables it again. */
export const disableAfterMs = 5 * 86_400_000;

interface DisableWebhookDeps {
  readonly begin: () => UnitOfWork;
  readonly webhooks: Collection<WebhookObject>;
  readonly deliveries: Pick<Deliveries, "forget">;
  readonly clock: Clock;
}

/** Disables the endpoint, with the event `webhook.disabled`, if it responded with 410 or has failed for 5 days. */
async function disableIfFailing(
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
