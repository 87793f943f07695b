import { connect, type DetailedPeerCertificate } from "node:tls";
import { create } from "@bufbuild/protobuf";
import { EnrollRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { endpointOf } from "@holdfast/common/endpoint.ts";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import type { KeyWithRequest } from "./certificate-request.ts";
import { createControllerChannel, enrollmentMethods } from "./controller-channel.ts";
import { type EnrollmentFile, tokenDigest } from "./enrollment-file.ts";
import { identityOf, type MachineIdentity, pemOf } from "./machine-identity.ts";

const timeoutMs = 5_000;

/**
 * Exchanges the token for a client certificate of this key. The token is sent only to a controller that the
 * enrollment's authority certifies.
 */
export async function enroll(
  file: EnrollmentFile,
  { privateKey, request }: KeyWithRequest,
  address: string,
  now: () => number,
): Promise<MachineIdentity> {
  const { installationId, machineId, token } = file;
  const trustBundle = await fetchPinnedAuthority(address, file.caFingerprint, timeoutMs);
  const channel = createControllerChannel(address, { trustBundle, installationId });
  try {
    const message = create(EnrollRequestSchema, { machineId, installationId, token, certificateRequest: request });
    const issuedAt = now();
    const response = await channel.unary(enrollmentMethods.enroll, message, timeoutMs);
    return identityOf(response, issuedAt, { installationId, privateKey, tokenDigest: tokenDigest(token) });
  } finally {
    channel.close();
  }
}

/**
 * Fetches the authority with this fingerprint from a server's certificate chain, as PEM. Throws if the chain lacks it.
 * No data is sent on this connection; the authority verifies the next one.
 */
export async function fetchPinnedAuthority(address: string, fingerprint: string, timeoutMs: number): Promise<string> {
  const chain = await presentedChain(address, timeoutMs);
  const pinned = chain.find((der) => fingerprintOf(der) === fingerprint);
  if (pinned === undefined) throw new Error("the server's chain lacks the authority of the enrollment");
  return pemOf([pinned]);
}

function presentedChain(address: string, timeoutMs: number): Promise<Buffer[]> {
  const { host, port } = endpointOf(address);
  return new Promise((resolve, reject) => {
    // Unverified on purpose: only the chain is needed, to find the pinned certificate.
    const socket = connect({ host, port, rejectUnauthorized: false, ALPNProtocols: ["h2"] });
    socket.setTimeout(timeoutMs, () => socket.destroy(new Error("the controller does not respond")));
    socket.once("error", reject);
    socket.once("secureConnect", () => {
      const certificates: Buffer[] = [];
      let each: DetailedPeerCertificate | undefined = socket.getPeerCertificate(true);
      while (each?.raw !== undefined && !certificates.some((certificate) => certificate.equals(each?.raw as Buffer))) {
        certificates.push(each.raw);
        each = each.issuerCertificate;
      }
      socket.destroy();
      resolve(certificates);
    });
  });
}
