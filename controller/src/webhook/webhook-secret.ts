import { createSecretKey, randomBytes } from "node:crypto";
import type { Sealer } from "../secrets/sealer.ts";
import { keyOf } from "../store/resource.ts";
import type { SigningSecrets } from "./signature.ts";
import type { WebhookObject } from "./webhook.ts";

/** A new signing secret: 64 hex characters, which are the key as they stand. */
export function newSecret(): string {
  return randomBytes(32).toString("hex");
}

export function sealSecret(secret: string, webhookId: string, sealer: Sealer): string {
  return sealer.seal(secret, keyOf("webhook", webhookId));
}

/** The secrets that sign now. They are opened once for each state of the endpoint. */
export function openSecrets(webhook: WebhookObject, now: number, sealer: Sealer): SigningSecrets {
  const { previous } = webhook.spec;
  const opened = openedSecrets.get(webhook) ?? open(webhook, sealer);
  openedSecrets.set(webhook, opened);
  return previous !== null && previous.validUntil > now ? opened : { current: opened.current };
}

const openedSecrets = new WeakMap<WebhookObject, SigningSecrets>();

function open({ metadata, spec }: WebhookObject, sealer: Sealer): SigningSecrets {
  const key = (sealed: string) => createSecretKey(sealer.open(sealed, keyOf("webhook", metadata.id)), "utf8");
  return {
    current: key(spec.sealedSecret),
    ...(spec.previous !== null && { previous: key(spec.previous.sealedSecret) }),
  };
}
