import { create } from "@bufbuild/protobuf";
import { EnrollRequestSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { KeyWithRequest } from "./certificate-request.ts";
import { createControllerChannel, enrollmentMethods } from "./controller-channel.ts";
import { type EnrollmentFile, tokenDigest } from "./enrollment-file.ts";
import { identityOf, type MachineIdentity } from "./machine-identity.ts";
import { fetchPinnedAuthority } from "./pinned-authority.ts";

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
