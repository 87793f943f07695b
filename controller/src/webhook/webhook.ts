import type { Resource } from "../store/resource.ts";
import type { RetryPolicyName } from "./retry-policy.ts";

/** An endpoint that gets events. It has no name of its own. */
export type WebhookObject = Resource<WebhookSpec, WebhookStatus>;

export interface WebhookSpec {
  readonly url: string;
  /** Null for all types, none for an empty list. */
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

/** Does the endpoint get this event? A test goes to the endpoint that it is about, whatever its filter. */
export function wantsEvent(
  { metadata, spec }: WebhookObject,
  event: { readonly organizationId: string; readonly type: string; readonly objectId: string },
): boolean {
  if (metadata.organizationId !== event.organizationId || !spec.active) return false;
  if (event.type === "webhook.test") return event.objectId === metadata.id;
  return spec.events === null || spec.events.includes(event.type);
}
