import { createHmac, type KeyObject } from "node:crypto";

/** The signing secrets of an endpoint: the current one, and the previous one during the overlap after a rotation. */
export interface SigningSecrets {
  readonly current: KeyObject;
  readonly previous?: KeyObject;
}

/**
 * Signature headers: `X-Platform-Signature` (spec 2), and those of Standard Webhooks 1.0. Receivers of the first
 * compare one value, so it is signed by the previous secret until the overlap ends.
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
