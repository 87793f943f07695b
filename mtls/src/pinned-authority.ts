import { connect, type DetailedPeerCertificate } from "node:tls";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import { pemOf } from "./pem.ts";

/**
 * PEM of the authority with this fingerprint out of the chain that a server shows. Throws when it is not there. Nothing
 * is sent on this connection; the authority is what the next one is verified with.
 */
export async function fetchPinnedAuthority(address: string, fingerprint: string, timeoutMs: number): Promise<string> {
  const chain = await shownChain(address, timeoutMs);
  const pinned = chain.find((der) => fingerprintOf(der) === fingerprint);
  if (pinned === undefined) throw new Error("the server's chain has not the authority of the enrollment");
  return pemOf([pinned]);
}

function shownChain(address: string, timeoutMs: number): Promise<Buffer[]> {
  const { host, port } = endpointOf(address);
  return new Promise((resolve, reject) => {
    // Unverified on purpose: all that is wanted is the chain, to find the one certificate that is known already.
    const socket = connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error("the controller does not answer")));
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      const certificates: Buffer[] = [];
      let each: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
      while (each?.raw !== undefined && !certificates.some((known) => known.equals(each?.raw as Buffer))) {
        certificates.push(each.raw);
        each = each.issuerCertificate;
      }
      socket.destroy();
      resolve(certificates);
    });
  });
}
