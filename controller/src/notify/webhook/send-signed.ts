import { createHmac, type KeyObject } from "node:crypto";
import type { EgressClient } from "@holdfast/egress/egress-client.ts";
import { EgressFailure } from "@holdfast/egress/egress-failure.ts";
import type { AttemptOutcome } from "./receiver.ts";
import { attemptMs } from "./retry-policy.ts";

/** A signed message for an HTTP endpoint. */
export interface SignedMessage {
  /** Id of the event, the same in each attempt. */
  readonly id: string;
  readonly body: string;
  /** Milliseconds since 1970. */
  readonly sentAt: number;
  readonly secrets: SigningSecrets;
}

interface SendContext {
  readonly egress: Pick<EgressClient, "post">;
  readonly organizationId: string;
  readonly signal: AbortSignal;
}

/**
 * Posts the signed message once. Only a status of 200 to 299 is a success (spec 2). The response body is not stored.
 */
export async function sendSigned(
  url: string,
  { id, body, sentAt, secrets }: SignedMessage,
  { egress, organizationId, signal }: SendContext,
): Promise<AttemptOutcome> {
  const signatures = signatureHeaders({ id, body, timestampS: Math.floor(sentAt / 1_000) }, secrets);
  const headers = { "content-type": "application/json", "user-agent": "Holdfast-Webhooks/1", ...signatures };
  try {
    const { status, retryAfterMs } = await egress.post(url, {
      headers,
      body,
      deadlineMs: attemptMs,
      signal,
      organizationId,
    });
    if (status >= 200 && status < 300) return { responseStatus: status, errorMessage: null };
    const redirect = status >= 300 && status < 400 ? "; redirects are not followed" : "";
    return { responseStatus: status, errorMessage: `The endpoint responded with ${status}${redirect}.`, retryAfterMs };
  } catch (error) {
    if (!(error instanceof EgressFailure)) throw error;
    return { responseStatus: null, errorMessage: error.message };
  }
}

/** The signing secrets of an endpoint: the current one, and the previous one during the overlap after a rotation. */
export interface SigningSecrets {
  readonly current: KeyObject;
  readonly previous?: KeyObject;
}

/**
 * Signature headers: `X-Platform-Signature` (spec 2), and the headers of Standard Webhooks 1.0. Receivers compare
 * `X-Platform-Signature` with one value, so the previous secret signs it until the overlap ends.
 */
function signatureHeaders(
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

/**
 * The body of a delivery (spec 2, Events). The bytes are the same in every attempt: members are sorted, because the
 * history does not preserve their order.
 */
export function envelopeOf(event: {
  readonly id: string;
  readonly type: string;
  readonly occurredAt: number;
  readonly data: Readonly<Record<string, unknown>>;
}): string {
  return JSON.stringify({
    id: event.id,
    event_type: event.type,
    timestamp: new Date(event.occurredAt).toISOString(),
    data: inOrder(event.data),
  });
}

/** JSON with sorted members: equal values have equal texts. */
export function stableText(value: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(inOrder(value));
}

/** The value with the members of each object in the order of their names. */
function inOrder(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(inOrder);
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return Object.fromEntries(members.map(([name, member]) => [name, inOrder(member)]));
}
