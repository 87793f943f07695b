import { X509Certificate } from "node:crypto";
import { connect, type PeerCertificate } from "node:tls";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import { Agent } from "undici";

/** Address of an Incus daemon. */
export type IncusAddress = IncusSocket | IncusRemote;

export interface IncusSocket {
  /** Path of the daemon's Unix socket. */
  readonly socket: string;
}

/**
 * A daemon with an HTTPS listener (`core.https_address`). Each side pins the other's certificate, without authorities
 * and names.
 */
export interface IncusRemote {
  /** URL such as `https://10.0.0.5:8443`. */
  readonly url: string;
  /** Certificate and key of the client, PEM. */
  readonly certificate: string;
  readonly key: string;
  /** Pinned certificate of the daemon, PEM; any other is refused, and this one after its expiry. */
  readonly serverCertificate: string;
}

/** Time limit of a response. Work that takes longer is an operation, whose end is an event. */
const responseTimeoutMs = 30_000;

/** Origin of the daemon's URLs. Over a Unix socket the host name is only a placeholder. */
export function originOf(address: IncusAddress): string {
  return "socket" in address ? "http://incus.invalid" : new URL(address.url).origin;
}

/** Connections to a daemon; over HTTPS only to the one with the pinned certificate. */
export function dispatcherFor(address: IncusAddress): Agent {
  const connect = "socket" in address ? { socketPath: address.socket } : tlsOptions(address);
  return new Agent({ connect, headersTimeout: responseTimeoutMs, bodyTimeout: responseTimeoutMs });
}

/** Error code for a daemon with a valid certificate other than the pinned one. */
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
        : Object.assign(new Error("the Incus daemon has another certificate"), { code: otherCertificate }),
  };
}

/**
 * The daemon's certificate, PEM, if it has this fingerprint. Sends nothing, and presents no client certificate. Throws
 * for another certificate.
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
    const presented = socket.getPeerX509Certificate();
    if (presented === undefined || fingerprintOf(presented.raw) !== fingerprint.toLowerCase())
      throw new Error(`${url} presents another certificate than ${fingerprint}`);
    return presented.toString();
  } finally {
    signal.removeEventListener("abort", abort);
    socket.destroy();
  }
}
