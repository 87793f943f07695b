import { createSecretKey, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, type Resource } from "#kernel/store/resource.ts";
import type { RetryPolicyName } from "./retry-policy.ts";
import type { SigningSecrets } from "./send-signed.ts";

/** A webhook endpoint; it has no name. */
export type WebhookObject = Resource<WebhookSpec, WebhookStatus>;

export const webhookKind = defineKind<WebhookObject>("webhook", {
  deletedWithOrganization: true,
  quotas: [{ name: "webhooks", label: "webhooks", limit: 20, limitMax: 1_000, error: "WEBHOOK_LIMIT_REACHED" }],
});

export interface WebhookSpec {
  readonly url: string;
  /** Filter of event types. Null: all types except opt-in ones; empty: none. */
  readonly events: readonly string[] | null;
  readonly active: boolean;
  readonly retryPolicy: RetryPolicyName;
  /** The signing secret, sealed for this object. */
  readonly sealedSecret: string;
  /** The previous secret during the overlap after a rotation; null for none. */
  readonly previous: { readonly sealedSecret: string; readonly validUntil: number } | null;
}

export interface WebhookStatus {
  /** Time at which the platform disabled the endpoint, in milliseconds since 1970; null if it did not. */
  readonly disabledAt: number | null;
}

/**
 * True if the endpoint gets the event. Without a filter it gets all types except opt-in ones. A test event ignores the
 * filter and goes only to the tested endpoint.
 */
export function matchesEvent(
  { metadata, spec }: WebhookObject,
  event: { readonly organizationId: string; readonly type: string; readonly objectId: string },
  isOptIn: (type: string) => boolean,
): boolean {
  if (metadata.organizationId !== event.organizationId || !spec.active) return false;
  if (event.type === "webhook.test") return event.objectId === metadata.id;
  // Only the channel gets events of channels.
  if (event.type.startsWith("channel.")) return false;
  if (spec.events !== null) return spec.events.includes(event.type);
  return !isOptIn(event.type);
}

/** A new signing secret: 64 hex characters, used as the key without decoding. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

/** The secret sealed for this endpoint; it cannot be opened for another one. */
export function sealSecret(secret: string, webhookId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf(webhookKind, webhookId));
}

/**
 * Returns a function for the current signing secrets of an endpoint. They are opened once per revision of the endpoint.
 */
export function createSecretsOf(sealer: Sealer): (webhook: WebhookObject, now: number) => SigningSecrets {
  const opened = new WeakMap<WebhookObject, SigningSecrets>();
  return (webhook, now) => {
    const { previous } = webhook.spec;
    const secrets = opened.get(webhook) ?? open(webhook, sealer);
    opened.set(webhook, secrets);
    return previous !== null && previous.validUntil > now ? secrets : { current: secrets.current };
  };
}

function open({ metadata, spec }: WebhookObject, sealer: Sealer): SigningSecrets {
  const key = (sealed: string) => createSecretKey(sealer.open(sealed, keyOf(webhookKind, metadata.id)), "utf8");
  return {
    current: key(spec.sealedSecret),
    ...(spec.previous !== null && { previous: key(spec.previous.sealedSecret) }),
  };
}
