import { verify } from "@octokit/webhooks-methods";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { Webhook as SvixWebhook } from "svix";
import type { Received } from "./webhook-receiver.ts";

/**
 * Third-party verifiers, by the headers that they read. Each returns whether it accepts the delivery as signed with the
 * secret.
 */
const verifiers: Readonly<Record<string, (delivery: Received, secret: string) => Promise<boolean>>> = {
  "octokit, X-Platform-Signature": ({ body, headers }, secret) =>
    verify(secret, body, String(headers["x-platform-signature"])),
  "octokit, X-Platform-Signature-Next": async ({ body, headers }, secret) =>
    headers["x-platform-signature-next"] !== undefined &&
    (await verify(secret, body, String(headers["x-platform-signature-next"]))),
  standardwebhooks: ({ body, headers }, secret) => accepts(new StandardWebhook(keyOf(secret)), body, headers),
  svix: ({ body, headers }, secret) => accepts(new SvixWebhook(keyOf(secret)), body, headers),
};

/** Names of the verifiers that accept it. */
export async function acceptedBy(delivery: Received | undefined, secret: string): Promise<string[]> {
  if (delivery === undefined) return [];
  const names: string[] = [];
  for (const [name, judge] of Object.entries(verifiers)) if (await judge(delivery, secret)) names.push(name);
  return names;
}

/** The secret as those libraries expect it: the key is the literal 64 characters. */
function keyOf(secret: string): string {
  return `whsec_${Buffer.from(secret).toString("base64")}`;
}

async function accepts(
  judge: { verify(body: string, headers: Record<string, string>): unknown },
  body: string,
  headers: Received["headers"],
): Promise<boolean> {
  try {
    judge.verify(body, headers as Record<string, string>);
    return true;
  } catch (error) {
    if (error instanceof Error && error.constructor.name === "WebhookVerificationError") return false;
    throw error;
  }
}
