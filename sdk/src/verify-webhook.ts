import type { PlatformEvent } from "./event-types.ts";

/** The request does not prove that the platform sent it, now. */
export class WebhookVerificationFailed extends Error {
  override readonly name = "WebhookVerificationFailed";
}

/** What verifyWebhook judges the time of sending by. */
export interface VerifyWebhookOptions {
  /** How far the time of sending may be from now, 300 s when left out. */
  readonly toleranceS?: number | undefined;
  /** Milliseconds since 1970, the clock's when left out. */
  readonly now?: number | undefined;
}

/** Of a Request, or of Node's http: names in lower case there. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * A delivery without the time of sending is as old as the longest retries make it, at most. A copy of a request whose
 * signed time was removed can be replayed for as long, so keep the ids that you have seen.
 */
const oldestUntimedMs = 24 * 3_600_000;

/**
 * The event of a delivery, when one of the secrets signed exactly these bytes; throws WebhookVerificationFailed when
 * not. While a secret is rotated, give the old and the new one. Checked are the headers of Standard Webhooks, which
 * sign the time too, or `X-Platform-Signature` alone where something on the way took those out.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceS = 300, now = Date.now() }: VerifyWebhookOptions = {},
): Promise<PlatformEvent> {
  const header = (name: string) => headerOf(headers, name);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (secrets.length === 0 || secrets.includes("")) throw new TypeError("a secret is needed to verify with");
  const body = bytesOf(rawBody);
  const [id, sentAt, standard] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  const isTimed = id !== undefined && sentAt !== undefined && standard !== undefined;
  const signatures = isTimed ? standardSignatures(standard) : platformSignatures(header);
  if (signatures.length === 0) throw new WebhookVerificationFailed("the request has no signature");
  const content = isTimed ? joined(bytesOf(`${id}.${sentAt}.`), body) : body;
  if (!(await isSigned(content, signatures, secrets)))
    throw new WebhookVerificationFailed("no signature is of the body and the secret");
  if (isTimed && !(/^\d{1,12}$/.test(sentAt) && Math.abs(now / 1_000 - Number(sentAt)) <= toleranceS))
    throw new WebhookVerificationFailed("the request was not sent now: it may be an old one, or a clock is wrong");
  const event = parse(body);
  if (!isTimed && Math.abs(now - Date.parse(event.timestamp)) > oldestUntimedMs)
    throw new WebhookVerificationFailed("the event is old, and nothing tells when the request was sent");
  return event;
}

/** WebCrypto's verify compares in constant time. */
async function isSigned(
  content: Uint8Array<ArrayBuffer>,
  signatures: readonly Uint8Array<ArrayBuffer>[],
  secrets: readonly string[],
): Promise<boolean> {
  const { subtle } = globalThis.crypto;
  for (const secret of secrets) {
    const key = await subtle.importKey("raw", keyOf(secret), { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) if (await subtle.verify("HMAC", key, signature, content)) return true;
  }
  return false;
}

/** The secret as it stands, or in the form that other libraries of Standard Webhooks want it. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  return secret.startsWith("whsec_") ? (fromBase64(secret.slice(6)) ?? bytesOf(secret)) : bytesOf(secret);
}

/** "v1,<base64> v1,<base64>". */
function standardSignatures(header: string): Uint8Array<ArrayBuffer>[] {
  return header
    .split(" ")
    .filter((part) => part.startsWith("v1,"))
    .flatMap((part) => fromBase64(part.slice(3)) ?? []);
}

/** "sha256=<hex>", and that of the next secret while one is rotated. */
function platformSignatures(header: (name: string) => string | undefined): Uint8Array<ArrayBuffer>[] {
  return ["x-platform-signature", "x-platform-signature-next"].flatMap((name) => {
    const [, hex] = /^sha256=([0-9a-f]{64})$/i.exec(header(name) ?? "") ?? [];
    return hex === undefined ? [] : [Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16))];
  });
}

function headerOf(headers: WebhookHeaders, name: string): string | undefined {
  if (headers instanceof Headers) return headers.get(name) ?? undefined;
  const [, value] = Object.entries(headers).find(([key]) => key.toLowerCase() === name) ?? [];
  return typeof value === "string" ? value : value?.[0];
}

function parse(body: Uint8Array): PlatformEvent {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body)) as PlatformEvent;
  } catch (cause) {
    throw new WebhookVerificationFailed("the body is not JSON", { cause });
  }
}

function bytesOf(value: string | Uint8Array | ArrayBuffer): Uint8Array<ArrayBuffer> {
  return typeof value === "string" ? new TextEncoder().encode(value) : new Uint8Array(value);
}

function joined(one: Uint8Array, other: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(one.length + other.length);
  all.set(one);
  all.set(other, one.length);
  return all;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
