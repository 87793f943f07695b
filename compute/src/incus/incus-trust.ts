import { setTimeout as sleep } from "node:timers/promises";
import { fetchServerCertificate, type IncusRemote } from "./incus-address.ts";
import type { IncusClient } from "./incus-client.ts";
import { IncusError } from "./incus-transport.ts";

/**
 * Output of `incus config trust add`: a one-time token that makes the daemon trust a client, with the fingerprint of
 * the daemon's certificate.
 */
export interface TrustToken {
  /** The token as printed. */
  readonly text: string;
  /** SHA-256 of the daemon's certificate, hex. */
  readonly fingerprint: string;
}

/** Parses a token. Throws for another text. */
export function readTrustToken(text: string): TrustToken {
  const trimmed = text.trim();
  try {
    const { fingerprint } = JSON.parse(Buffer.from(trimmed, "base64").toString("utf8")) as { fingerprint?: unknown };
    if (typeof fingerprint === "string" && /^[0-9a-f]{64}$/i.test(fingerprint)) return { text: trimmed, fingerprint };
  } catch {
    // Not even JSON: the error is thrown below.
  }
  throw new Error("is not a token of `incus config trust add`");
}

/** The daemon that a token names. */
export async function remoteByToken(
  remote: Omit<IncusRemote, "serverCertificate">,
  token: TrustToken,
  signal: AbortSignal,
): Promise<IncusRemote> {
  return { ...remote, serverCertificate: await fetchServerCertificate(remote.url, token.fingerprint, signal) };
}

/**
 * Resolves when the daemon trusts the client certificate, already or by the token. Throws with the command that helps
 * if it does not.
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
      throw new Error(`The Incus daemon does not accept the token (${error.message}). ${remedy}`, { cause: error });
    }
    for (let attempt = 0; attempt < maxAttempts; attempt += 1) {
      if (await isTrusted(incus, signal)) return;
      await sleep(pollIntervalMs, undefined, { signal });
    }
  }
  throw new Error(`The Incus daemon does not trust this client's certificate. ${remedy}`);
}

/** Attempts to connect after the daemon accepted the token: it adopts the certificate up to 2 s later. */
const maxAttempts = 20;
const pollIntervalMs = 100;
const remedy = "On its host: incus config trust add-certificate FILE, or incus config trust add NAME for a new token.";

async function isTrusted(incus: IncusClient, signal: AbortSignal): Promise<boolean> {
  return (await incus.call<{ auth: string }>("GET", "/1.0", signal)).auth === "trusted";
}
