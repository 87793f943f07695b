import { createSecretKey, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { SigningSecrets } from "./signature.ts";
import { webhookKind, type WebhookObject } from "./webhook.ts";

/** A new signing secret: 64 hex characters, which are the key as they stand. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

/** Sealed for this endpoint: it does not open as another one's. */
export function sealSecret(secret: string, webhookId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf(webhookKind, webhookId));
}

/** Answers the secrets of an endpoint that sign now. They are opened once for each state of the endpoint. */
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
