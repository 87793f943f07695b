import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import { status as Code } from "@grpc/grpc-js";
import type { Log } from "@holdfast/common/log.ts";
import type { TokenBuckets } from "@holdfast/common/concurrency/token-buckets.ts";
import {
  type CertificateResponse,
  CertificateResponseSchema,
  type EnrollRequest,
  type IssueServerCertificateRequest,
  type RenewCertificateRequest,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { type AnyCall, sourcesOfPeer } from "@holdfast/mtls/peer.ts";
import { requirePeer, RpcFailure, unary } from "@holdfast/mtls/rpc-handlers.ts";
import type { Authority, IssuedCertificate } from "@holdfast/mtls/authority.ts";
import type { MachineCertificates } from "./machine-certificates.ts";

export interface CertificateRpcsDeps {
  readonly installationId: string;
  readonly authority: Authority;
  readonly certificates: MachineCertificates;
  /** Rate of certificate requests of one machine: each needs a signature and a write. */
  readonly rates: TokenBuckets;
  /** Rate of failed enrollments of one source: each needs a read of the store. */
  readonly failures: TokenBuckets;
  readonly log: Log;
}

/** The RPCs Enroll, RenewCertificate and IssueServerCertificate. */
export function createCertificateRpcs({
  installationId,
  authority,
  certificates,
  rates,
  failures,
  log,
}: CertificateRpcsDeps) {
  const responseOf = (issued: IssuedCertificate) => certificateMessage(issued, authority);
  const requireMachine = (call: AnyCall) => {
    const peer = requirePeer(call, installationId, "machine");
    if (!rates.admits(peer.identity.id, 1))
      throw new RpcFailure(Code.RESOURCE_EXHAUSTED, "too many certificate requests of this machine");
    return peer;
  };
  return {
    enroll: unary<EnrollRequest, CertificateResponse>("Enroll", log, async (request, call) => {
      const { machineId, token, certificateRequest } = request;
      const sources = sourcesOfPeer(call.getPeer());
      // Charged before the check and refunded on success: of a thousand concurrent attempts only the burst is checked.
      if (!sources.every(({ name, factor }) => failures.admits(name, 1 / factor)))
        throw new RpcFailure(Code.RESOURCE_EXHAUSTED, "too many failed enrollments");
      const issued = await certificates.enroll(machineId, request.installationId, token, certificateRequest);
      for (const { name, factor } of sources) failures.refund(name, 1 / factor);
      log.info("machine enrolled", { machine: machineId, serial: issued.serial, address: call.getPeer() });
      return responseOf(issued);
    }),
    renewCertificate: unary<RenewCertificateRequest, CertificateResponse>(
      "RenewCertificate",
      log,
      async (request, call) => {
        const peer = requireMachine(call);
        const issued = await certificates.renew(peer, request.certificateRequest);
        log.info("machine certificate renewed", { machine: peer.identity.id, serial: issued.serial });
        return responseOf(issued);
      },
    ),
    issueServerCertificate: unary<IssueServerCertificateRequest, CertificateResponse>(
      "IssueServerCertificate",
      log,
      async (request, call) => {
        const peer = requireMachine(call);
        return responseOf(await certificates.issueServer(peer, request.certificateRequest, request.forMembers));
      },
    ),
  };
}

/** The response message with the certificate chain and the current trust bundle. */
export function certificateMessage(
  { chain, notAfter, generation }: IssuedCertificate,
  { trustBundle }: Pick<Authority, "trustBundle">,
): CertificateResponse {
  return create(CertificateResponseSchema, {
    chain: [...chain],
    trustBundle,
    notAfter: timestampFromDate(notAfter),
    authorityGeneration: BigInt(generation),
  });
}
