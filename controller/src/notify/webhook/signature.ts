import { createHmac, type KeyObject } from "node:crypto";

/** What signs a delivery: the secret, and for the overlap after a rotation the one before it. */
export interface SigningSecrets {
  readonly current: KeyObject;
  readonly previous?: KeyObject;
}

/**
 * Headers that prove where a body comes from: `X-Platform-Signature` of spec 2, and those of Standard Webhooks 1.0. Receivers
 * of the first compare one value, so the old secret keeps that header until its overlap ends.
 */
export function signatureHeaders(
  { id, body, timestampS }: { readonly id: string; readonly body: string; readonly timestampS: number },
  { current, previous }: SigningSecrets,
): Record<string, string> {
  const platform = (secret: KeyObject) => `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`;
  const standard = (secret: KeyObject) =>
    `v1,${createHmac("sha256", secret).update(`${id}.${timestampS}.${body}`).digest("base64")}`;
  const secrets = previous === undefined ? [current] : [current, previous];
  return {
    "x-platform-signature": platform(previous ?? current),
    ...(previous !== undefined && { "x-platform-signature-next": platform(current) }),
    "webhook-id": id,
    "webhook-timestamp": String(timestampS),
    "webhook-signature": secrets.map(standard).join(" "),
  };
}
