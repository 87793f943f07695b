import { X509Certificate } from "node:crypto";
import { connect, type PeerCertificate } from "node:tls";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import { Agent } from "undici";

/** Where an Incus daemon is. */
export type IncusAddress = IncusSocket | IncusRemote;

export interface IncusSocket {
  /** The daemon's Unix socket. */
  readonly socket: string;
}

/** A daemon that listens to HTTPS (`core.https_address`). Each end knows the other's certificate; no authority and no name counts. */
export interface IncusRemote {
  /** Such as `https://10.0.0.5:8443`. */
  readonly url: string;
  /** The client's certificate and key, PEM. */
  readonly certificate: string;
  readonly key: string;
  /** The daemon's own certificate, PEM; any other is refused, and this one when it has expired. */
  readonly serverCertificate: string;
}

/** A daemon that says nothing for so long will not: everything long is an operation. */
const answerWithinMs = 30_000;

/** Origin of the daemon's URLs. Over a Unix socket the host is only a word. */
export function originOf(address: IncusAddress): string {
  return "socket" in address ? "http://incus.invalid" : new URL(address.url).origin;
}

/** Connections to a daemon; over HTTPS only to the one with the certificate that is known. */
export function dispatcherFor(address: IncusAddress): Agent {
  const connect = "socket" in address ? { socketPath: address.socket } : tlsOptions(address);
  return new Agent({ connect, headersTimeout: answerWithinMs, bodyTimeout: answerWithinMs });
}

/** Code of the error for a daemon whose certificate is in order, and not the known one. */
export const otherCertificate = "ERR_INCUS_OTHER_CERTIFICATE";

function tlsOptions({ certificate, key, serverCertificate }: IncusRemote) {
  const pinned = fingerprintOf(new X509Certificate(serverCertificate).raw);
  return {
    ca: [serverCertificate],
    cert: certificate,
    key,
    minVersion: "TLSv1.3" as const,
    checkServerIdentity: (_name: string, peer: PeerCertificate) =>
      fingerprintOf(peer.raw) === pinned
        ? undefined
        : Object.assign(new Error("the daemon of Incus has another certificate"), { code: otherCertificate }),
  };
}

/**
 * The certificate that a daemon shows, PEM, if it has this fingerprint; nothing is sent to it, and no certificate of ours
 * shown. Throws when it is another one.
 */
export async function fetchServerCertificate(url: string, fingerprint: string, signal: AbortSignal): Promise<string> {
  const { hostname, port } = new URL(url);
  const socket = connect({
    host: hostname,
    port: Number(port || 443),
    rejectUnauthorized: false,
    minVersion: "TLSv1.3",
  });
  const abort = () => socket.destroy(signal.reason as Error);
  signal.addEventListener("abort", abort, { once: true });
  try {
    await new Promise<void>((resolve, reject) => {
      socket.once("secureConnect", resolve);
      socket.once("error", reject);
    });
    const shown = socket.getPeerX509Certificate();
    if (shown === undefined || fingerprintOf(shown.raw) !== fingerprint.toLowerCase())
      throw new Error(`${url} shows another certificate than ${fingerprint}`);
    return shown.toString();
  } finally {
    signal.removeEventListener("abort", abort);
    socket.destroy();
  }
}
