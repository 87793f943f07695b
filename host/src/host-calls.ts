import { create } from "@bufbuild/protobuf";
import { type ServiceError, status as Code } from "@grpc/grpc-js";
import { createControllerChannel } from "@holdfast/mtls/controller-channel.ts";
import type { KeyWithRequest } from "@holdfast/mtls/certificate-request.ts";
import { tokenDigest } from "@holdfast/mtls/enrollment-file.ts";
import { identityOf, type MachineIdentity } from "@holdfast/mtls/machine-identity.ts";
import { fetchPinnedAuthority } from "@holdfast/mtls/enroll.ts";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import type { JoinFile } from "@holdfast/common/join-file.ts";
import type { CertificateResponse } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import {
  ConfirmHostCertificateRequestSchema,
  EnrollHostRequestSchema,
  HostEnrollmentService,
  RenewHostCertificateRequestSchema,
} from "@holdfast/proto/holdfast/host/v1/enrollment_pb.ts";

const methods = grpcService(HostEnrollmentService);
const timeoutMs = 5_000;

/** A refusal by a controller, which every other controller would repeat. The message is for the operator. */
export class HostRefused extends Error {
  override readonly name = "HostRefused";
}

/** The host's certificate and key, in the format of a machine's identity. */
export type HostIdentity = MachineIdentity;

/**
 * Exchanges the join token for a certificate of this key, at a controller of the authority that the join file names.
 */
export async function enrollHost(
  join: JoinFile,
  addressBlock: string,
  { privateKey, request: certificateRequest }: KeyWithRequest,
  address: string,
  now: () => number,
): Promise<HostIdentity> {
  const { installation_id: installationId, host_id: hostId, token, ca_fingerprint: fingerprint } = join;
  const trustBundle = await fetchPinnedAuthority(address, fingerprint, timeoutMs);
  const channel = createControllerChannel(address, { trustBundle, installationId });
  try {
    const request = { hostId, installationId, token, certificateRequest, addressBlock };
    const issuedAt = now();
    const message = create(EnrollHostRequestSchema, request);
    const { certificate } = await channel.unary(methods.enrollHost, message, timeoutMs).catch(refusal);
    const rest = { installationId, privateKey, tokenDigest: tokenDigest(token) };
    return identityOf(required(certificate), issuedAt, rest);
  } finally {
    channel.close();
  }
}

/** Requests the identity's next certificate, for another key. */
export async function renewHost(
  identity: HostIdentity,
  { privateKey, request: certificateRequest }: KeyWithRequest,
  address: string,
  now: () => number,
): Promise<HostIdentity> {
  const channel = channelOf(identity, address);
  try {
    const issuedAt = now();
    const message = create(RenewHostCertificateRequestSchema, { certificateRequest });
    const { certificate } = await channel.unary(methods.renewHostCertificate, message, timeoutMs);
    return identityOf(required(certificate), issuedAt, { ...identity, privateKey });
  } finally {
    channel.close();
  }
}

/** Confirms that this certificate is stored, so that the previous one may be revoked. */
export async function confirmHost(identity: HostIdentity, address: string): Promise<void> {
  const channel = channelOf(identity, address);
  try {
    await channel.unary(methods.confirmHostCertificate, create(ConfirmHostCertificateRequestSchema), timeoutMs);
  } finally {
    channel.close();
  }
}

function channelOf({ trustBundle, installationId, privateKey, certificate }: HostIdentity, address: string) {
  return createControllerChannel(address, { trustBundle, installationId, client: { privateKey, certificate } });
}

function required(certificate: CertificateResponse | undefined): CertificateResponse {
  if (certificate === undefined) throw new Error("the controller responded without a certificate");
  return certificate;
}

function refusal(error: ServiceError): never {
  if (error.code === Code.PERMISSION_DENIED)
    throw new HostRefused(
      "the token was used, has expired or belongs to another installation, or the host was removed; create a join file with `holdfast admin hosts add`",
    );
  if (error.code === Code.FAILED_PRECONDITION || error.code === Code.INVALID_ARGUMENT)
    throw new HostRefused(error.details);
  throw error;
}
