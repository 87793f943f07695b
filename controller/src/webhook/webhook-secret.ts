import { randomBytes } from "node:crypto";
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

/** The secrets that sign now. */
export function openSecrets({ metadata, spec }: WebhookObject, now: number, sealer: Sealer): SigningSecrets {
  const open = (sealed: string) => sealer.open(sealed, keyOf("webhook", metadata.id));
  const previous = spec.previous !== null && spec.previous.validUntil > now ? spec.previous : undefined;
  return {
    current: open(spec.sealedSecret),
    ...(previous !== undefined && { previous: open(previous.sealedSecret) }),
  };
}
