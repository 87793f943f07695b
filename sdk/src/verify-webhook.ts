import type { PlatformEvent } from "./event-types.ts";

/** The request is not a recent delivery that was signed by one of the secrets. */
export class WebhookVerificationFailed extends Error {
  override readonly name = "WebhookVerificationFailed";
}

/** Options of the check of the sending time. */
export interface VerifyWebhookOptions {
  /** Accepted difference between the sending time and now; 300 s by default. */
  readonly toleranceS?: number | undefined;
  /** Current time in milliseconds since 1970; the clock's by default. */
  readonly now?: number | undefined;
}

/** Headers of a Request, or of Node's http with names in lower case. */
export type WebhookHeaders = Headers | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Maximum age of an event in a delivery without a signed sending time: the duration of the longest retries. Such a
 * request can be replayed for this time, so store the ids of handled events.
 */
const oldestUntimedMs = 24 * 3_600_000;

/**
 * Verifies a delivery and returns its event. Throws WebhookVerificationFailed unless one of the secrets signed exactly
 * these bytes; while a secret is rotated, pass the old and the new one. It checks the headers of Standard Webhooks,
 * which include the signed sending time, or `X-Platform-Signature` when a proxy removed these.
 */
export async function verifyWebhook(
  rawBody: string | Uint8Array | ArrayBuffer,
  headers: WebhookHeaders,
  secret: string | readonly string[],
  { toleranceS = 300, now = Date.now() }: VerifyWebhookOptions = {},
): Promise<PlatformEvent> {
  const header = (name: string) => headerOf(headers, name);
  const secrets = typeof secret === "string" ? [secret] : secret;
  if (secrets.length === 0 || secrets.includes("")) throw new TypeError("a secret is required");
  const body = bytesOf(rawBody);
  const [id, sentAt, standard] = [header("webhook-id"), header("webhook-timestamp"), header("webhook-signature")];
  const isTimed = id !== undefined && sentAt !== undefined && standard !== undefined;
  const signatures = isTimed ? standardSignatures(standard) : platformSignatures(header);
  if (signatures.length === 0) throw new WebhookVerificationFailed("the request has no signature");
  const content = isTimed ? joined(bytesOf(`${id}.${sentAt}.`), body) : body;
  if (!(await isSigned(content, signatures, secrets)))
    throw new WebhookVerificationFailed("no signature matches the body and a secret");
  if (isTimed && !(/^\d{1,12}$/.test(sentAt) && Math.abs(now / 1_000 - Number(sentAt)) <= toleranceS))
    throw new WebhookVerificationFailed(
      "the request is too old or from the future: it may be a replay, or a clock is wrong",
    );
  const event = parse(body);
  if (!isTimed && Math.abs(now - Date.parse(event.timestamp)) > oldestUntimedMs)
    throw new WebhookVerificationFailed("the event is old and the request has no sending time");
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

/** The key of a secret: its bytes, or the base64 content after `whsec_`, the format of Standard Webhooks libraries. */
function keyOf(secret: string): Uint8Array<ArrayBuffer> {
  return secret.startsWith("whsec_") ? (fromBase64(secret.slice(6)) ?? bytesOf(secret)) : bytesOf(secret);
}

/** Parses "v1,<base64> v1,<base64>". */
function standardSignatures(header: string): Uint8Array<ArrayBuffer>[] {
  return header
    .split(" ")
    .filter((part) => part.startsWith("v1,"))
    .flatMap((part) => fromBase64(part.slice(3)) ?? []);
}

/** Parses "sha256=<hex>" of the secret, and of the next secret while one is rotated. */
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

function joined(first: Uint8Array, second: Uint8Array): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}

function fromBase64(text: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
  } catch {
    return undefined;
  }
}
