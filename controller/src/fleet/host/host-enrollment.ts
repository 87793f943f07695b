import { create } from "@bufbuild/protobuf";
import { status as Code } from "@grpc/grpc-js";
import { grpcService } from "@holdfast/mtls/grpc-service.ts";
import type { Log } from "@holdfast/common/log.ts";
import {
  type ConfirmHostCertificateRequest,
  type ConfirmHostCertificateResponse,
  ConfirmHostCertificateResponseSchema,
  type EnrollHostRequest,
  type EnrollHostResponse,
  EnrollHostResponseSchema,
  HostEnrollmentService,
  type RenewHostCertificateRequest,
  type RenewHostCertificateResponse,
  RenewHostCertificateResponseSchema,
} from "@holdfast/proto/holdfast/host/v1/enrollment_pb.ts";
import { certificateMessage } from "../certificate/certificate-rpcs.ts";
import type { IdentityCertificates } from "../certificate/identity-certificates.ts";
import { requirePeer, RpcFailure, unary } from "@holdfast/mtls/rpc-handlers.ts";
import type { Authority, IssuedCertificate } from "@holdfast/mtls/authority.ts";
import type { AddressBlocks } from "./address-blocks.ts";

export interface HostEnrollmentDeps {
  readonly installationId: string;
  readonly authority: Authority;
  readonly certificates: Pick<IdentityCertificates<unknown>, "enroll" | "renew" | "check" | "used">;
  readonly blocks: Pick<AddressBlocks, "claim">;
  /** True if a host with this id exists and was not declared destroyed. */
  readonly exists: (hostId: string) => Promise<boolean>;
  readonly log: Log;
}

/** The RPCs of HostEnrollmentService, for the controllers' listener. */
export function createHostEnrollment(deps: HostEnrollmentDeps) {
  const { installationId, authority, certificates, blocks, exists, log } = deps;

  const certificateOf = (issued: IssuedCertificate) => ({ certificate: certificateMessage(issued, authority) });

  async function claim(block: string, hostId: string): Promise<void> {
    if (!/^\d{1,3}\.\d{1,3}$/.test(block))
      throw new RpcFailure(
        Code.INVALID_ARGUMENT,
        `address_block: ${block} is not the first two octets of a block, such as 10.77`,
      );
    const holder = await blocks.claim(block, hostId, exists);
    if (holder === undefined) return;
    const help = "Join with another --address-block.";
    throw new RpcFailure(Code.FAILED_PRECONDITION, `The addresses ${block}.* belong to host ${holder}. ${help}`);
  }

  return {
    definition: grpcService(HostEnrollmentService),
    implementation: {
      enrollHost: unary<EnrollHostRequest, EnrollHostResponse>("EnrollHost", log, async (request, call) => {
        const { hostId, token, certificateRequest, addressBlock } = request;
        const issued = await certificates.enroll(hostId, request.installationId, token, certificateRequest, () =>
          claim(addressBlock, hostId),
        );
        log.info("host enrolled", { host: hostId, serial: issued.serial, address: call.getPeer() });
        return create(EnrollHostResponseSchema, certificateOf(issued));
      }),
      renewHostCertificate: unary<RenewHostCertificateRequest, RenewHostCertificateResponse>(
        "RenewHostCertificate",
        log,
        async ({ certificateRequest }, call) => {
          const peer = requirePeer(call, installationId, "host");
          const issued = await certificates.renew(peer, certificateRequest);
          log.info("host certificate renewed", { host: peer.identity.id, serial: issued.serial });
          return create(RenewHostCertificateResponseSchema, certificateOf(issued));
        },
      ),
      confirmHostCertificate: unary<ConfirmHostCertificateRequest, ConfirmHostCertificateResponse>(
        "ConfirmHostCertificate",
        log,
        async (_request, call) => {
          const peer = requirePeer(call, installationId, "host");
          await certificates.check(peer);
          await certificates.used(peer);
          return create(ConfirmHostCertificateResponseSchema);
        },
      ),
    },
  };
}
