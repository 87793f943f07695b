import { createHash } from "node:crypto";
import { status as Code } from "@grpc/grpc-js";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { Identity } from "@holdfast/common/identity.ts";
import type { Peer } from "@holdfast/mtls/peer.ts";
import { RpcFailure } from "@holdfast/mtls/rpc-handlers.ts";
import type { Authority, IssuedCertificate } from "@holdfast/mtls/authority.ts";
import { provenKey } from "#kernel/pki/issue.ts";
import { type EnrolledStatus, matchesEnrollment } from "#kernel/pki/enrollment.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Kind } from "#kernel/store/kind.ts";
import { keyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";

export interface IdentityCertificatesDeps<R extends Resource<unknown, EnrolledStatus>> {
  readonly installationId: string;
  /** Kind of the identity in the certificates. */
  readonly kind: Identity["kind"] & ("machine" | "host");
  readonly objectKind: Pick<Kind<R>, "name" | "format">;
  readonly objects: Pick<Collection<R>, "get" | "getCurrent">;
  /** True if the object must not get another certificate. */
  readonly isRemoved: (object: R) => boolean;
  readonly store: Store;
  readonly authority: Authority;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly log: Log;
  /** True after a restore: machines may have newer certificates than the store. */
  readonly storeMayBeBehind: () => boolean;
}

/**
 * The valid certificate of each machine or host. Its serial is stored in the object's status and changed by
 * compare-and-set only. A renewal makes two serials valid; the first use of the new certificate revokes the previous
 * one.
 */
export interface IdentityCertificates<R> {
  /**
   * Spends the token for the key of the certificate request. A repeated request with the same token and key gets
   * another certificate, because the response may have been lost. `before` runs after the token is checked and before
   * it is spent; if it throws, the token remains valid. Throws PERMISSION_DENIED for an invalid token.
   */
  enroll(
    id: string,
    installationId: string,
    token: string,
    csr: Uint8Array,
    before?: () => Promise<void>,
  ): Promise<IssuedCertificate>;
  /** Issues a new certificate. The previous certificate remains valid until the new one is used. */
  renew(peer: Peer, csr: Uint8Array): Promise<IssuedCertificate>;
  /** The peer's object. Throws PERMISSION_DENIED for a superseded certificate or a deleted object. */
  check(peer: Peer): Promise<Stored<R>>;
  /**
   * True if, according to the cache, the certificate is superseded or its object is deleted. `since` is the revision at
   * which it was checked; an older cached object proves nothing.
   */
  isRevoked(id: string, serial: string, since: bigint): boolean;
  /** Revokes the previous certificate, because the peer uses the new one. */
  used(peer: Peer): Promise<void>;
}

type Certificate = EnrolledStatus["certificate"];

export function createIdentityCertificates<R extends Resource<unknown, EnrolledStatus>>(
  deps: IdentityCertificatesDeps<R>,
): IdentityCertificates<R> {
  const {
    installationId,
    kind,
    objectKind,
    objects,
    isRemoved,
    store,
    authority,
    sealer,
    clock,
    log,
    storeMayBeBehind,
  } = deps;

  /** Retries the change until its compare-and-set succeeds. If `edit` returns undefined, nothing is written. */
  async function change(id: string, edit: (object: R) => Partial<EnrolledStatus> | undefined): Promise<void> {
    for (;;) {
      const before = await objects.getCurrent(id);
      if (before === undefined) throw refused();
      const status = edit(before.object);
      if (status === undefined) return;
      const after: R = { ...before.object, status: { ...before.object.status, ...status } };
      const key = keyOf(objectKind, id);
      const done = await store.commit({
        conditions: [{ key, modRevision: before.modRevision }],
        puts: [{ key, value: objectKind.format(after) }],
        deletes: [],
      });
      if (done.committed) return;
    }
  }

  const isCurrent = (object: R, serial: string) => !isRemoved(object) && hasSerial(object.status, serial);

  async function check(peer: Peer): Promise<Stored<R>> {
    const { id } = peer.identity;
    const cached = objects.get(id);
    if (cached !== undefined && isCurrent(cached.object, peer.serial)) return cached;
    // The cache may lag behind a certificate that another controller just issued.
    const stored = await objects.getCurrent(id);
    if (stored !== undefined && isCurrent(stored.object, peer.serial)) return stored;
    if (!storeMayBeBehind()) throw revoked();
    await adopt(peer);
    return (await objects.getCurrent(id)) ?? Promise.reject(revoked());
  }

  /**
   * Records a certificate that was issued after the stored one and lost when the store was restored. Only certificates
   * that begin later than the stored one are adopted, so that a superseded one never becomes valid again.
   */
  async function adopt(peer: Peer): Promise<void> {
    await change(peer.identity.id, (object) => {
      const { certificate } = object.status;
      const isLost = certificate === null || peer.notBefore > certificate.beganAt;
      if (isRemoved(object) || !isLost) throw revoked();
      const previousSerial = certificate?.serial ?? "";
      const { serial, notBefore, notAfter: expiresAt } = peer;
      // The generation of its authority was lost as well. With 0 it counts as outdated until the next renewal.
      return { certificate: { serial, previousSerial, beganAt: notBefore, expiresAt, authorityGeneration: 0 } };
    });
    log.warn("certificate adopted after a restore", { [kind]: peer.identity.id, serial: peer.serial });
  }

  return {
    check,
    async enroll(id, claimedInstallation, token, csr, before) {
      const admits = (object: R) =>
        !isRemoved(object) && matchesEnrollment(object.status.enrollment, token, sealer, clock);
      if (claimedInstallation !== installationId || !isId(id)) throw refused();
      const stored = await objects.getCurrent(id);
      // The token is checked before a certificate is signed, which takes CPU time.
      if (stored === undefined || !admits(stored.object)) throw refused();
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
        // The earlier response may have arrived: its certificate remains valid until the new one is used.
        return { certificate: recordOf(issued, certificate?.serial ?? "") };
      });
      return issued;
    },
    async renew(peer, csr) {
      await check(peer);
      const issued = await authority.issueIdentity(csr, peer.identity);
      await change(peer.identity.id, (now) => {
        if (!isCurrent(now, peer.serial)) throw revoked();
        return { certificate: recordOf(issued, peer.serial) };
      });
      return issued;
    },
    isRevoked(id, serial, since) {
      const cached = objects.get(id);
      if (cached === undefined) return true;
      return cached.modRevision >= since && !isCurrent(cached.object, serial);
    },
    async used(peer) {
      const supersedes = (certificate: Certificate) =>
        certificate !== null && certificate.serial === peer.serial && certificate.previousSerial !== "";
      const cached = objects.get(peer.identity.id);
      if (cached !== undefined && cached.object.status.certificate?.serial === peer.serial) {
        if (!supersedes(cached.object.status.certificate)) return;
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

/** True if this is the serial of the current certificate, or of the previous one that is still valid. */
export function hasSerial({ certificate }: EnrolledStatus, serial: string): boolean {
  if (certificate === null || serial === "") return false;
  return certificate.serial === serial || certificate.previousSerial === serial;
}

function isId(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(text);
}

/** One message for every reason, so that a caller cannot probe for objects. */
function refused(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the enrollment is not valid");
}

function revoked(): RpcFailure {
  return new RpcFailure(Code.PERMISSION_DENIED, "the certificate is not valid any more");
}
