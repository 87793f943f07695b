import { createSecretKey, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { SigningSecrets } from "./signature.ts";
import { webhookKind, type WebhookObject } from "./webhook.ts";

/** A new signing secret: 64 hex characters, used as the key without decoding. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

/** The secret sealed for this endpoint; it cannot be opened for another one. */
export function sealSecret(secret: string, webhookId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf(webhookKind, webhookId));
}

/**
 * Returns a function for the current signing secrets of an endpoint. They are opened once per version of the endpoint.
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
