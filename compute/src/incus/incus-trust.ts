import { setTimeout as sleep } from "node:timers/promises";
import { fetchServerCertificate, type IncusRemote } from "./incus-address.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError } from "./incus-transport.ts";

/** What `incus config trust add` prints: it makes a client trusted once, and says by which certificate the daemon is known. */
export interface TrustToken {
  /** As it was printed. */
  readonly text: string;
  /** SHA-256 of the daemon's certificate, hex. */
  readonly fingerprint: string;
}

/** Throws for what is no such token. */
export function readTrustToken(text: string): TrustToken {
  const trimmed = text.trim();
  try {
    const { fingerprint } = JSON.parse(Buffer.from(trimmed, "base64").toString("utf8")) as { fingerprint?: unknown };
    if (typeof fingerprint === "string" && /^[0-9a-f]{64}$/i.test(fingerprint)) return { text: trimmed, fingerprint };
  } catch {
    // Not even JSON: told below.
  }
  throw new Error("is no token of `incus config trust add`");
}

/** A daemon as a token knows it. */
export async function remoteByToken(
  remote: Omit<IncusRemote, "serverCertificate">,
  token: TrustToken,
  signal: AbortSignal,
): Promise<IncusRemote> {
  return { ...remote, serverCertificate: await fetchServerCertificate(remote.url, token.fingerprint, signal) };
}

/**
 * Resolves when the daemon trusts our certificate: it does already, or the token makes it. Throws with the command that helps
 * when it does not.
 */
export async function becomeTrusted(
  incus: IncusClient,
  token: TrustToken | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (await isTrusted(incus, signal)) return;
  if (token !== undefined) {
    const request = { type: "client", trust_token: token.text };
    try {
      await incus.call("POST", "/1.0/certificates", signal, request);
    } catch (error) {
      if (!(error instanceof IncusError)) throw error;
      throw new Error(`The daemon of Incus does not take the token (${error.message}). ${remedy}`, { cause: error });
    }
    for (let look = 0; look < looks; look += 1) {
      if (await isTrusted(incus, signal)) return;
      await sleep(lookEveryMs, undefined, { signal });
    }
  }
  throw new Error(`The daemon of Incus does not trust this client's certificate. ${remedy}`);
}

/** A daemon puts a new certificate to use in a moment. */
const looks = 20;
const lookEveryMs = 100;
const remedy = "On its host: incus config trust add-certificate FILE, or incus config trust add NAME for a new token.";

async function isTrusted(incus: IncusClient, signal: AbortSignal): Promise<boolean> {
  return (await incus.call<{ auth: string }>("GET", "/1.0", signal)).auth === "trusted";
}
