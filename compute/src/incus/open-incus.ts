import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import type { Log } from "@holdfast/common/log.ts";
import { HostUnreachable } from "../compute-failure.ts";
import { fetchServerCertificate, type IncusRemote } from "./incus-address.ts";
import { createIncusClient, type IncusClient } from "./incus-client.ts";
import type { ProviderSettings } from "../provider-settings.ts";
import { DaemonIdentityMismatch, IncusError } from "./incus-transport.ts";

/** Settings of the daemon and of the connection to it. */
export type IncusSettings = Pick<
  ProviderSettings,
  "incusSocket" | "incusProject" | "incusUrl" | "incusCert" | "incusKey" | "incusServerCert" | "incusTokenFile"
>;

/**
 * Time limit of the trust check: a daemon that is down may start later, and a hanging one must not block the start.
 */
const trustTimeoutMs = 30_000;

/**
 * Opens the daemon of the settings. Over HTTPS it is identified by its certificate, or by the fingerprint in a trust
 * token. Throws if it has another certificate, or does not trust the client certificate.
 */
export async function openIncus(settings: IncusSettings, log: Log, now = Date.now): Promise<IncusClient> {
  const { incusSocket: socket, incusProject: project, incusUrl: url } = settings;
  if (url === "") return createIncusClient({ socket }, project);
  if (!url.startsWith("https://")) throw new Error(`HOLDFAST_INCUS_URL: ${url} is not an https:// URL`);
  const signal = AbortSignal.timeout(trustTimeoutMs);
  const token = await tokenOf(settings.incusTokenFile);
  const incus = createIncusClient(await remoteOf(settings, token, { log, now }, signal), project);
  try {
    await becomeTrusted(incus, token, signal);
  } catch (error) {
    if (!(error instanceof HostUnreachable) || error instanceof DaemonIdentityMismatch) {
      await incus.close();
      throw error;
    }
    log.warn("incus does not respond yet", { url });
  }
  return incus;
}

async function remoteOf(
  settings: IncusSettings,
  token: TrustToken | undefined,
  { log, now }: { readonly log: Log; readonly now: () => number },
  signal: AbortSignal,
): Promise<IncusRemote> {
  const { incusUrl: url, incusCert, incusKey, incusServerCert } = settings;
  if (incusCert === "" || incusKey === "")
    throw new Error("HOLDFAST_INCUS_CERT and HOLDFAST_INCUS_KEY are required with HOLDFAST_INCUS_URL");
  const [certificate, key] = await Promise.all([readFile(incusCert, "utf8"), readFile(incusKey, "utf8")]);
  const endsAt = requireValid({ file: incusCert, text: certificate }, { file: incusKey, text: key }, now());
  if (endsAt.getTime() < now() + expiryWarningMs)
    log.warn("incus client certificate expires soon", { file: incusCert, at: endsAt.toISOString() });
  const client = { url, certificate, key };
  if (incusServerCert !== "") return { ...client, serverCertificate: await readFile(incusServerCert, "utf8") };
  if (token !== undefined) return remoteByToken(client, token, signal);
  throw new Error(
    "HOLDFAST_INCUS_SERVER_CERT or HOLDFAST_INCUS_TOKEN_FILE is required, because it identifies the daemon",
  );
}

/** Each start logs a warning from this long before the certificate's expiry. */
const expiryWarningMs = 30 * 86_400_000;

interface PemFile {
  readonly file: string;
  readonly text: string;
}

/**
 * Expiry of the client certificate. Throws with the file's name if it has expired, or has another key: the daemon would
 * close the connection without a reason.
 */
function requireValid(certificate: PemFile, key: PemFile, now: number): Date {
  const parsed = new X509Certificate(certificate.text);
  const endsAt = parsed.validToDate;
  if (endsAt.getTime() <= now)
    throw new Error(
      `HOLDFAST_INCUS_CERT: ${certificate.file} has expired on ${endsAt.toISOString()}. Make another, and on the host of Incus: incus config trust add-certificate FILE`,
    );
  if (!parsed.checkPrivateKey(createPrivateKey(key.text)))
    throw new Error(`HOLDFAST_INCUS_KEY: ${key.file} is not the key of the certificate ${certificate.file}`);
  return endsAt;
}

async function tokenOf(file: string): Promise<TrustToken | undefined> {
  if (file === "") return undefined;
  try {
    return readTrustToken(await readFile(file, "utf8"));
  } catch (error) {
    throw new Error(`HOLDFAST_INCUS_TOKEN_FILE: ${file} ${error instanceof Error ? error.message : String(error)}`, {
      cause: error,
    });
  }
}

/**
 * Output of `incus config trust add`: a one-time token that makes the daemon trust a client, with the fingerprint of
 * the daemon's certificate.
 */
interface TrustToken {
  /** The token as printed. */
  readonly text: string;
  /** SHA-256 of the daemon's certificate, hex. */
  readonly fingerprint: string;
}

/** Parses a token. Throws for another text. */
function readTrustToken(text: string): TrustToken {
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
async function remoteByToken(
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
async function becomeTrusted(incus: IncusClient, token: TrustToken | undefined, signal: AbortSignal): Promise<void> {
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
