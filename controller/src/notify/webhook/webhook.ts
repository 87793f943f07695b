import type { Resource } from "#kernel/store/resource.ts";
import type { RetryPolicyName } from "./retry-policy.ts";
import { defineKind } from "#kernel/store/kind.ts";

/** An endpoint that gets events. It has no name of its own. */
export type WebhookObject = Resource<WebhookSpec, WebhookStatus>;

export const webhookKind = defineKind<WebhookObject>("webhook", {
  goesWithOrganization: true,
  quotas: [{ name: "webhooks", words: "webhooks", limit: 20, error: "WEBHOOK_LIMIT_REACHED" }],
});

export interface WebhookSpec {
  readonly url: string;
  /** Null for all types but those that are opt-in, none for an empty list. */
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retryPolicy: RetryPolicyName;
  /** Sealed with the key of the object. */
  readonly sealedSecret: string;
  /** The secret before, while it signs too. */
  readonly previous: { readonly sealedSecret: string; readonly validUntil: number } | null;
}

export interface WebhookStatus {
  /** When the platform switched it off. */
  readonly disabledAt: number | null;
}

/** Does the endpoint get this event? Without a filter it gets all types but those that want to be named. A test goes to the endpoint that it is about, whatever its filter. */
export function wantsEvent(
  { metadata, spec }: WebhookObject,
  event: { readonly organizationId: string; readonly type: string; readonly objectId: string },
  isOptIn: (type: string) => boolean,
): boolean {
  if (metadata.organizationId !== event.organizationId || !spec.active) return false;
  if (event.type === "webhook.test") return event.objectId === metadata.id;
  // Of channels only the channel itself is told.
  if (event.type.startsWith("channel.")) return false;
  if (spec.events !== null) return spec.events.includes(event.type);
  return !isOptIn(event.type);
}
