import { createHash } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Peer } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-status.ts";
import type { Authority, IssuedCertificate } from "@holdfast/mtls/authority.ts";
import { provenKey } from "#kernel/pki/certificate-request.ts";
import type { EnrolledStatus } from "#kernel/pki/enrolled-status.ts";
import { matchesEnrollment } from "#kernel/pki/enrollment-token.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";

export interface IdentityCertificatesDeps<R extends Resource<unknown, EnrolledStatus>> {
  readonly installationId: string;
  /** Of the objects, and of the identities in their certificates. */
  readonly kind: Identity["kind"] & ("machine" | "host");
  readonly objects: Pick<Collection<R>, "get" | "fresh">;
  /** True for an object that must get no further certificate. */
  readonly isOut: (object: R) => boolean;
  readonly store: Store;
  readonly authority: Authority;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  /** True after a restore: there may be newer certificates than the store knows. */
  readonly storeMayBeBehind: () => boolean;
}

/** Which certificate of a machine or host is good; kept in its object, changed by compare-and-set only. */
export interface IdentityCertificates<R> {
  /**
   * Spends the token for the request's key. The same token and key again get another certificate: the answer may be lost.
   * `before` is asked when the token is good and not spent yet; what it throws leaves the token good.
   */
  enroll(
    id: string,
    installationId: string,
    token: string,
    csr: Uint8Array,
    before?: () => Promise<void>,
  ): Promise<IssuedCertificate>;
  /** Both certificates are good until the new one is used. */
  renew(peer: Peer, csr: Uint8Array): Promise<IssuedCertificate>;
  /** The object whose good certificate the peer has; throws PERMISSION_DENIED for a superseded one or a deleted object. */
  check(peer: Peer): Promise<Stored<R>>;
  /**
   * By what is in memory now: has this certificate been superseded, or its object deleted? `since` is the revision by
   * which it was checked; older memory proves nothing.
   */
  isRevoked(id: string, serial: string, since: bigint): boolean;
  /** The older certificate ends now that the newer one is in use. */
  used(peer: Peer): Promise<void>;
}

type Certificate = EnrolledStatus["certificate"];

export function createIdentityCertificates<R extends Resource<unknown, EnrolledStatus>>(
  deps: IdentityCertificatesDeps<R>,
): IdentityCertificates<R> {
  const { installationId, kind, objects, isOut, store, authority, sealer, clock, log, storeMayBeBehind } = deps;

  /** Redoes the change until nobody was in between; undefined changes nothing. */
  async function change(id: string, edit: (object: R) => Partial<EnrolledStatus> | undefined): Promise<void> {
    for (;;) {
      const before = await objects.fresh(id);
      if (before === undefined) throw refused();
      const status = edit(before.object);
      if (status === undefined) return;
      const after: R = { ...before.object, status: { ...before.object.status, ...status } };
      const key = keyOf({ name: kind }, id);
      const done = await store.commit({
        conditions: [{ key, modRevision: before.modRevision }],
        puts: [{ key, value: JSON.stringify(after) }],
        deletes: [],
      });
      if (done.committed) return;
    }
  }

  const isGood = (object: R, serial: string) => !isOut(object) && hasSerial(object.status, serial);

  async function check(peer: Peer): Promise<Stored<R>> {
    const { id } = peer.identity;
    const known = objects.get(id);
    if (known !== undefined && isGood(known.object, peer.serial)) return known;
    // Memory may be a moment behind a certificate that another controller just issued.
    const fresh = await objects.fresh(id);
    if (fresh !== undefined && isGood(fresh.object, peer.serial)) return fresh;
    if (!storeMayBeBehind()) throw revoked();
    await adopt(peer);
    return (await objects.fresh(id)) ?? Promise.reject(revoked());
  }

  /**
   * Takes a certificate that was issued after the recorded one: the store forgot it when it was restored. Only what began
   * later is taken, so that none that was superseded comes back.
   */
  async function adopt(peer: Peer): Promise<void> {
    await change(peer.identity.id, (object) => {
      const { certificate } = object.status;
      const forgotten = certificate === null || peer.beganAt > certificate.beganAt;
      if (isOut(object) || !forgotten) throw revoked();
      const previousSerial = certificate?.serial ?? "";
      const { serial, beganAt, endsAt: expiresAt } = peer;
      // By which authorities it was issued is forgotten as well: the next one tells.
      return { certificate: { serial, previousSerial, beganAt, expiresAt, authorityGeneration: 0 } };
    });
    log.warn("certificate adopted after a restore", { [kind]: peer.identity.id, serial: peer.serial });
  }

  return {
    check,
    async enroll(id, claimedInstallation, token, csr, before) {
      const admits = (object: R) => !isOut(object) && matchesEnrollment(object.status.enrollment, token, sealer, clock);
      if (claimedInstallation !== installationId || !isId(id)) throw refused();
      const known = await objects.fresh(id);
      // The token comes first: a stranger costs no signature.
      if (known === undefined || !admits(known.object)) throw refused();
      await before?.();
      const spentBy = await keyDigest(csr);
      const issued = await authority.issueIdentity(csr, { kind, id });
      await change(id, (now) => {
        const { enrollment, certificate } = now.status;
        if (enrollment === null || !admits(now)) throw refused();
        if (enrollment.spentBy === undefined) {
          return { enrollment: { ...enrollment, spentBy }, certificate: recordOf(issued, "") };
        }
        if (enrollment.spentBy !== spentBy) throw refused();
        // The earlier answer may have arrived all the same.
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
    isRevoked(id, serial, since) {
      const known = objects.get(id);
      if (known === undefined) return true;
      return known.modRevision >= since && !isGood(known.object, serial);
    },
    async used(peer) {
      const supersedes = (certificate: Certificate) =>
        certificate !== null && certificate.serial === peer.serial && certificate.previousSerial !== "";
      const known = objects.get(peer.identity.id);
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

/** Is this the serial of its certificate, or of the one before that is good still? */
export function hasSerial({ certificate }: EnrolledStatus, serial: string): boolean {
  if (certificate === null || serial === "") return false;
  return certificate.serial === serial || certificate.previousSerial === serial;
}

function isId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** One answer for every reason, so that a caller cannot probe for objects. */
function refused(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the enrollment is not good");
}

function revoked(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the certificate is not good any more");
}
