import { status as Code } from "@grpc/grpc-js";
import type { Peer } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { IssuedCertificate } from "@holdfast/mtls/authority.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { privateNameOf } from "../zone/private-name.ts";
import {
  createIdentityCertificates,
  type IdentityCertificates,
  type IdentityCertificatesDeps,
} from "./identity-certificates.ts";

export interface MachineCertificatesDeps
  extends Omit<IdentityCertificatesDeps<MachineObject>, "kind" | "objects" | "isOut"> {
  readonly machines: Collection<MachineObject>;
}

/** Certificates of agents, and of the engines that they run. */
export interface MachineCertificates extends IdentityCertificates<MachineObject> {
  /** For the machine's names, and the private form of each. */
  issueServer(peer: Peer, csr: Uint8Array, forMembers: boolean): Promise<IssuedCertificate>;
}

export function createMachineCertificates({ machines, ...deps }: MachineCertificatesDeps): MachineCertificates {
  const certificates = createIdentityCertificates({
    ...deps,
    kind: "machine",
    objects: machines,
    isOut: ({ metadata }: MachineObject) => metadata.deletionRequestedAt !== undefined,
  });
  return {
    ...certificates,
    async issueServer(peer, csr, forMembers) {
      const machine = await certificates.check(peer);
      // Memory may be a moment behind the claim that gave a waiting machine its names.
      const known = machine.object.spec.serverNames;
      const names =
        known.length > 0 ? known : ((await machines.fresh(peer.identity.id))?.object.spec.serverNames ?? []);
      if (names.length === 0) throw new RpcFailure(Code.FAILED_PRECONDITION, "the machine has no server names");
      const all = [...names, ...names.map(privateNameOf)];
      return deps.authority.issueServer(csr, all, forMembers ? peer.identity.id : undefined);
    },
  };
}
