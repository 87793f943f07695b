import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { ofOrganization } from "#kernel/store/collection.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { envelopeOf } from "./envelope.ts";
import type { Receivers } from "./receiver.ts";
import { sendSigned } from "./send-signed.ts";
import { type DisableWebhookDeps, disableIfFailing } from "./disable-webhook.ts";
import { createSecretsOf, matchesEvent } from "./webhook.ts";

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
