import { describe, expect, test } from "vitest";
import { createHmac } from "node:crypto";
import { verifyWebhook, type WebhookHeaders, WebhookVerificationFailed } from "./verify-webhook.ts";

const secret = "5f".repeat(32);
const other = "a1".repeat(32);
const now = Date.parse("2026-03-01T12:00:00Z");
const event = { id: "e1", event_type: "service.running", timestamp: "2026-03-01T11:59:58Z", data: { name: "größe" } };
const body = JSON.stringify(event);

const hex = (key: string, text = body) => `sha256=${createHmac("sha256", key).update(text).digest("hex")}`;
const standard = (key: string, sentAt: number, text = body, id = "e1") =>
  `v1,${createHmac("sha256", key).update(`${id}.${sentAt}.${text}`).digest("base64")}`;
const timed = (key: string, sentAt = now / 1_000): Record<string, string> => ({
  "x-platform-signature": hex(key),
  "webhook-id": "e1",
  "webhook-timestamp": String(sentAt),
  "webhook-signature": standard(key, sentAt),
});

const verify = (headers: WebhookHeaders, secrets: string | string[] = secret, text: string | Uint8Array = body) =>
  verifyWebhook(text, headers, secrets, { now });

describe("verifyWebhook", () => {
  test("accepts deliveries with every kind of header object", async () => {
    const headers = timed(secret);
    const all: WebhookHeaders[] = [
      headers,
      new Headers(headers),
      Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toUpperCase(), [value]])),
      { "X-Platform-Signature": hex(secret) },
    ];
    for (const form of all) expect(await verify(form)).toEqual(event);
    expect(await verify(headers, secret, new TextEncoder().encode(body))).toEqual(event);
    expect(await verify(headers, `whsec_${btoa(secret)}`)).toEqual(event);
  });

  test("accepts either secret during a rotation", async () => {
    const sentAt = now / 1_000;
    const rotating: Record<string, string> = {
      ...timed(other),
      "x-platform-signature-next": hex(secret),
      "webhook-signature": `${standard(secret, sentAt)} ${standard(other, sentAt)}`,
    };
    const { "webhook-id": _, ...platformOnly } = rotating;
    for (const headers of [rotating, platformOnly]) {
      for (const secrets of [secret, other, [other, secret]]) expect(await verify(headers, secrets)).toEqual(event);
      await expect(verify(headers, "00".repeat(32))).rejects.toBeInstanceOf(WebhookVerificationFailed);
    }
  });

  // Fault, headers and body.
  const refused: [string, Record<string, string>, string?][] = [
    ["another secret", timed(other)],
    ["a changed body", timed(secret), body.replace("running", "stopped")],
    ["another id", { ...timed(secret), "webhook-id": "e2" }],
    ["another time", { ...timed(secret), "webhook-timestamp": String(now / 1_000 + 1) }],
    ["sent long ago", timed(secret, now / 1_000 - 301)],
    ["sent in the future", timed(secret, now / 1_000 + 301)],
    ["no number as time", { ...timed(secret), "webhook-timestamp": "soon", "webhook-signature": "v1,AAAA" }],
    ["no signature", {}],
    ["an empty signature", { ...timed(secret), "webhook-signature": "" }],
    ["a signature of another kind", { ...timed(secret), "webhook-signature": "v1a,AAAA" }],
    ["a cut signature", { "x-platform-signature": hex(secret).slice(0, -2) }],
    ["no base64", { ...timed(secret), "webhook-signature": "v1,%%%" }],
    ["no JSON", { "x-platform-signature": hex(secret, "{") }, "{"],
  ];
  test.each(refused)("refuses %s", async (_, headers, text = body) => {
    await expect(verify(headers, secret, text)).rejects.toBeInstanceOf(WebhookVerificationFailed);
  });

  test("an old event without a sending time is refused", async () => {
    const old = JSON.stringify({ ...event, timestamp: "2026-02-27T12:00:00Z" });
    const headers = { "x-platform-signature": hex(secret, old) };
    await expect(verify(headers, secret, old)).rejects.toThrow("the event is old");
    expect(await verifyWebhook(body, timed(secret, 0), secret, { now: 0, toleranceS: 0 })).toEqual(event);
  });

  test("requires a secret", async () => {
    for (const none of ["", []]) await expect(verify(timed(""), none)).rejects.toBeInstanceOf(TypeError);
  });
});
