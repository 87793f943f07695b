import { status as Code } from "@grpc/grpc-js";
import type { Peer } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import { machineKind, type MachineObject } from "../machine/machine.ts";
import type { IssuedCertificate } from "@holdfast/mtls/authority.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { privateNameOf } from "../zone/dns-record.ts";
import {
  createIdentityCertificates,
  type IdentityCertificates,
  type IdentityCertificatesDeps,
} from "./identity-certificates.ts";

export interface MachineCertificatesDeps
  extends Omit<IdentityCertificatesDeps<MachineObject>, "kind" | "objectKind" | "objects" | "isRemoved"> {
  readonly machines: Collection<MachineObject>;
}

/** Client certificates of agents, and server certificates of their engines. */
export interface MachineCertificates extends IdentityCertificates<MachineObject> {
  /**
   * Issues the engine's server certificate for the machine's DNS names and the private name of each. With `forMembers`,
   * its common name is the machine's id, by which other members of the service identify it.
   */
  issueServer(peer: Peer, csr: Uint8Array, forMembers: boolean): Promise<IssuedCertificate>;
}

export function createMachineCertificates({ machines, ...deps }: MachineCertificatesDeps): MachineCertificates {
  const certificates = createIdentityCertificates({
    ...deps,
    kind: "machine",
    objectKind: machineKind,
    objects: machines,
    isRemoved: ({ metadata }: MachineObject) => metadata.deletionRequestedAt !== undefined,
  });
  return {
    ...certificates,
    async issueServer(peer, csr, forMembers) {
      const machine = await certificates.check(peer);
      // The cache may lag behind the claim that gave a machine of the warm pool its names.
      const cached = machine.object.spec.serverNames;
      const names =
        cached.length > 0 ? cached : ((await machines.getCurrent(peer.identity.id))?.object.spec.serverNames ?? []);
      if (names.length === 0) throw new RpcFailure(Code.FAILED_PRECONDITION, "the machine has no server names");
      const all = [...names, ...names.map(privateNameOf)];
      return deps.authority.issueServer(csr, all, forMembers ? peer.identity.id : undefined);
    },
  };
}
