import { createHash } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { MachineObject, MachineStatus } from "../machine/machine.ts";
import type { Authority, IssuedCertificate } from "../pki/authority.ts";
import { provenKey } from "../pki/certificate-request.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import { keyOf, type Stored } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import { matchesEnrollment } from "./enrollment-token.ts";
import type { Peer } from "./peer.ts";
import { RpcFailure } from "./rpc-status.ts";

export interface MachineCertificatesDeps {
  readonly installationId: string;
  readonly store: Store;
  readonly machines: Collection<MachineObject>;
  readonly authority: Authority;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  /** True after a restore: agents may have newer certificates than the store knows. */
  readonly storeMayBeBehind: () => boolean;
}

/** Which certificate of a machine is good; kept in the machine's object, changed by compare-and-set only. */
export interface MachineCertificates {
  /** Spends the token for the request's key. The same token and key again get another certificate: the answer may be lost. */
  enroll(machineId: string, installationId: string, token: string, csr: Uint8Array): Promise<IssuedCertificate>;
  /** Both certificates are good until the new one is used. */
  renew(peer: Peer, csr: Uint8Array): Promise<IssuedCertificate>;
  issueServer(peer: Peer, csr: Uint8Array): Promise<IssuedCertificate>;
  /** The machine whose good certificate the peer has; throws PERMISSION_DENIED for a superseded one or a deleted machine. */
  check(peer: Peer): Promise<Stored<MachineObject>>;
  /**
   * By what is in memory now: has this certificate been superseded, or its machine deleted? `since` is the revision by
   * which it was checked; older memory proves nothing.
   */
  isRevoked(machineId: string, serial: string, since: bigint): boolean;
  /** The older certificate ends now that the newer one is in use. */
  used(peer: Peer): Promise<void>;
}

type Certificate = MachineStatus["certificate"];

export function createMachineCertificates(deps: MachineCertificatesDeps): MachineCertificates {
  const { installationId, store, machines, authority, sealer, clock, log, storeMayBeBehind } = deps;

  /** Redoes the change until nobody was in between; undefined changes nothing. */
  async function change(
    machineId: string,
    edit: (machine: MachineObject) => Partial<MachineStatus> | undefined,
  ): Promise<void> {
    for (;;) {
      const before = await machines.fresh(machineId);
      if (before === undefined) throw refused();
      const status = edit(before.object);
      if (status === undefined) return;
      const after: MachineObject = { ...before.object, status: { ...before.object.status, ...status } };
      const key = keyOf("machine", machineId);
      const done = await store.commit({
        conditions: [{ key, modRevision: before.modRevision }],
        puts: [{ key, value: JSON.stringify(after) }],
        deletes: [],
      });
      if (done.committed) return;
    }
  }

  async function check(peer: Peer): Promise<Stored<MachineObject>> {
    const machineId = peer.identity.id;
    const known = machines.get(machineId);
    if (known !== undefined && isGood(known.object, peer.serial)) return known;
    // Memory may be a moment behind a certificate that another controller just issued.
    const fresh = await machines.fresh(machineId);
    if (fresh !== undefined && isGood(fresh.object, peer.serial)) return fresh;
    if (!storeMayBeBehind()) throw revoked();
    await adopt(peer);
    return (await machines.fresh(machineId)) ?? Promise.reject(revoked());
  }

  /**
   * Takes a certificate that was issued after the recorded one: the store forgot it when it was restored. Only what began
   * later is taken, so that none that was superseded comes back.
   */
  async function adopt(peer: Peer): Promise<void> {
    await change(peer.identity.id, ({ metadata, status: { certificate } }) => {
      const forgotten = certificate === null || peer.beganAt > certificate.beganAt;
      if (metadata.deletionRequestedAt !== undefined || !forgotten) throw revoked();
      const previousSerial = certificate?.serial ?? "";
      const { serial, beganAt, endsAt: expiresAt } = peer;
      // By which authorities it was issued is forgotten as well: the next one tells.
      return { certificate: { serial, previousSerial, beganAt, expiresAt, authorityGeneration: 0 } };
    });
    log.warn("certificate adopted after a restore", { machine: peer.identity.id, serial: peer.serial });
  }

  return {
    check,
    async enroll(machineId, claimedInstallation, token, csr) {
      const admits = ({ metadata, status: { enrollment } }: MachineObject) =>
        metadata.deletionRequestedAt === undefined && matchesEnrollment(enrollment, token, sealer, clock);
      if (claimedInstallation !== installationId || !isId(machineId)) throw refused();
      const machine = await machines.fresh(machineId);
      // The token comes first: a stranger costs no signature.
      if (machine === undefined || !admits(machine.object)) throw refused();
      const spentBy = await keyDigest(csr);
      const issued = await authority.issueIdentity(csr, { kind: "machine", id: machineId });
      await change(machineId, (now) => {
        const { enrollment, certificate } = now.status;
        if (enrollment === null || !admits(now)) throw refused();
        if (enrollment.spentBy === undefined) {
          return { enrollment: { ...enrollment, spentBy }, certificate: recordOf(issued, "") };
        }
        if (enrollment.spentBy !== spentBy) throw refused();
        // The answer of before may have come all the same.
        return { certificate: recordOf(issued, certificate?.serial ?? "") };
      });
      return issued;
    },
    async renew(peer, csr) {
      await check(peer);
      const issued = await authority.issueIdentity(csr, peer.identity);
      await change(peer.identity.id, (now) => {
        if (!isGood(now, peer.serial)) throw revoked();
        return { certificate: recordOf(issued, peer.serial) };
      });
      return issued;
    },
    async issueServer(peer, csr) {
      const machine = await check(peer);
      // Memory may be a moment behind the claim that gave a waiting machine its names.
      const known = machine.object.spec.serverNames;
      const names =
        known.length > 0 ? known : ((await machines.fresh(peer.identity.id))?.object.spec.serverNames ?? []);
      if (names.length === 0) throw new RpcFailure(Code.FAILED_PRECONDITION, "the machine has no server names");
      return authority.issueServer(csr, names);
    },
    isRevoked(machineId, serial, since) {
      const machine = machines.get(machineId);
      if (machine === undefined) return true;
      return machine.modRevision >= since && !isGood(machine.object, serial);
    },
    async used(peer) {
      const supersedes = (certificate: Certificate) =>
        certificate !== null && certificate.serial === peer.serial && certificate.previousSerial !== "";
      const known = machines.get(peer.identity.id);
      if (known !== undefined && known.object.status.certificate?.serial === peer.serial) {
        if (!supersedes(known.object.status.certificate)) return;
      }
      await change(peer.identity.id, ({ status: { certificate } }) =>
        certificate !== null && supersedes(certificate)
          ? { certificate: { ...certificate, previousSerial: "" } }
          : undefined,
      );
    },
  };
}

/** SHA-256 of the request's public key, hex. */
async function keyDigest(csr: Uint8Array): Promise<string> {
  const { rawData } = await provenKey(csr);
  return createHash("sha256").update(new Uint8Array(rawData)).digest("hex");
}

function recordOf(
  { serial, notBefore, notAfter, generation: authorityGeneration }: IssuedCertificate,
  previousSerial: string,
): NonNullable<Certificate> {
  return { serial, previousSerial, beganAt: notBefore.getTime(), expiresAt: notAfter.getTime(), authorityGeneration };
}

function isGood(machine: MachineObject, serial: string): boolean {
  const { certificate } = machine.status;
  if (certificate === null || machine.metadata.deletionRequestedAt !== undefined || serial === "") return false;
  return certificate.serial === serial || certificate.previousSerial === serial;
}

function isId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** One answer for every reason, so that nobody learns which machines there are. */
function refused(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the enrolment is not good");
}

function revoked(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the certificate is not good any more");
}
