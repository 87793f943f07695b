import { create } from "@bufbuild/protobuf";
import { timestampFromDate } from "@bufbuild/protobuf/wkt";
import type { Log } from "@holdfast/common/log.ts";
import {
  type CertificateResponse,
  CertificateResponseSchema,
  type EnrollRequest,
  type IssueServerCertificateRequest,
  type RenewCertificateRequest,
} from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { requirePeer, unary } from "../../listener/rpc-handlers.ts";
import type { Authority, IssuedCertificate } from "../../pki/authority.ts";
import type { MachineCertificates } from "./machine-certificates.ts";

export interface CertificateRpcsDeps {
  readonly installationId: string;
  readonly authority: Authority;
  readonly certificates: MachineCertificates;
  readonly log: Log;
}

/** Enroll, RenewCertificate and IssueServerCertificate. */
export function createCertificateRpcs({ installationId, authority, certificates, log }: CertificateRpcsDeps) {
  const answer = (issued: IssuedCertificate) => certificateMessage(issued, authority);
  return {
    enroll: unary<EnrollRequest, CertificateResponse>("Enroll", log, async (request, call) => {
      const { machineId, token, certificateRequest } = request;
      const issued = await certificates.enroll(machineId, request.installationId, token, certificateRequest);
      log.info("machine enrolled", { machine: machineId, serial: issued.serial, address: call.getPeer() });
      return answer(issued);
    }),
    renewCertificate: unary<RenewCertificateRequest, CertificateResponse>(
      "RenewCertificate",
      log,
      async (request, call) => {
        const peer = requirePeer(call, installationId, "machine");
        const issued = await certificates.renew(peer, request.certificateRequest);
        log.info("machine certificate renewed", { machine: peer.identity.id, serial: issued.serial });
        return answer(issued);
      },
    ),
    issueServerCertificate: unary<IssueServerCertificateRequest, CertificateResponse>(
      "IssueServerCertificate",
      log,
      async (request, call) => {
        const peer = requirePeer(call, installationId, "machine");
        return answer(await certificates.issueServer(peer, request.certificateRequest));
      },
    ),
  };
}

/** A certificate as it is answered, with the authorities to trust from now on. */
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
