import type { Clock } from "@holdfast/common/clock.ts";
import { fingerprintOf } from "@holdfast/common/fingerprint.ts";
import type { Log } from "@holdfast/common/log.ts";
import "reflect-metadata";
import { X509Certificate } from "@peculiar/x509";
import type { Authority, IssuedCertificate, KeyWithCertificate } from "@holdfast/mtls/authority.ts";
import { identityUri } from "@holdfast/common/identity.ts";
import { exportKey, importKey, newKeyPair } from "@holdfast/common/signing-key.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Store, StoredValue } from "../store/store.ts";
import { Conflict, type UnitOfWork } from "../store/unit-of-work.ts";
import {
  type AuthorityRecord,
  authorityKey,
  withSecondAuthority,
  initialRecord,
  pemOf,
  afterRotationEvent,
  type StoredAuthority,
  trustBundleOf,
} from "./authority-record.ts";
import { issueAuthority, issueLeaf, type Leaf, provenKey, type Signer } from "./issue.ts";

export interface AuthorityDeps {
  readonly store: Store;
  readonly sealer: Sealer;
  readonly installationId: string;
  readonly clock: Clock;
  readonly log: Log;
  readonly lifetimes?: Partial<Lifetimes>;
}

export interface Lifetimes {
  readonly authorityMs: number;
  readonly identityMs: number;
  readonly serverMs: number;
  /** Backdating of `notBefore`, so that a clock step of an hour on either side does not invalidate a certificate. */
  readonly backdateMs: number;
}

const dayMs = 86_400_000;
const defaultLifetimes: Lifetimes = {
  authorityMs: 3650 * dayMs,
  identityMs: 30 * dayMs,
  serverMs: 30 * dayMs,
  backdateMs: 7_200_000,
};

/**
 * Lifetimes derived from the lifetime of machine certificates. Server certificates last at least three minutes, also in
 * tests with short lifetimes.
 */
export function lifetimesOf(machineCertificateS: number): Pick<Lifetimes, "identityMs" | "serverMs"> {
  const identityMs = machineCertificateS * 1_000;
  return { identityMs, serverMs: Math.max(identityMs, 180_000) };
}

/** The installation's certificate authority and its rotation (authority-rotation-lifecycle.ts). */
export interface InstallationAuthority extends Authority {
  /** The current record, including sealed keys. */
  readonly record: AuthorityRecord;
  /**
   * Creates a second authority, which is trusted from now on and signs after the overlap. False while a rotation is in
   * progress. `begin` creates a unit of work for each attempt; the change is committed as part of that unit.
   */
  beginRotation(overlapMs: number, begin?: () => UnitOfWork): Promise<boolean>;
  /** Advances the rotation by one state; false if the event does not apply. */
  rotate(event: "trusted" | "renewed" | "cancelled", begin?: () => UnitOfWork): Promise<boolean>;
  /** Calls back when the trust bundle or the signing authority changed, here or on another controller. */
  subscribe(onChange: () => void): { close(): void };
  close(): void;
}

/** Opens the installation's authority; the first controller creates it. */
export async function createAuthority(deps: AuthorityDeps): Promise<InstallationAuthority> {
  const { store, sealer, installationId, clock, log } = deps;
  const lifetimes = { ...defaultLifetimes, ...deps.lifetimes };
  const listeners = new Set<() => void>();

  const first = await updateRecord(async (record) =>
    record === undefined ? initialRecord(await newAuthority(""), clock.now()) : undefined,
  );
  let current = await load(first);
  const watch = store.watch(authorityKey, {
    reset() {},
    put(value) {
      adopt(value).catch((error: unknown) => log.error("authority not adopted", { error }));
    },
    delete: () => log.error("authority record deleted from the store"),
    synced() {},
  });

  async function adopt(value: StoredValue): Promise<void> {
    if (value.modRevision <= current.modRevision) return;
    const loaded = await load({ record: JSON.parse(value.value) as AuthorityRecord, modRevision: value.modRevision });
    if (loaded.modRevision <= current.modRevision) return;
    current = loaded;
    for (const listener of listeners) listener();
  }

  /**
   * Retries a change of the record until no other writer interferes; an `edit` that returns undefined changes nothing.
   */
  async function updateRecord(
    edit: (record: AuthorityRecord | undefined) => Promise<AuthorityRecord | undefined> | AuthorityRecord | undefined,
    begin?: () => UnitOfWork,
  ): Promise<{ record: AuthorityRecord; modRevision: bigint; changed: boolean }> {
    for (;;) {
      const before = await store.get(authorityKey);
      const record = before && (JSON.parse(before.value) as AuthorityRecord);
      const after = await edit(record);
      if (after === undefined) {
        if (before === undefined || record === undefined) throw new Error("the store has no record of authorities");
        return { record, modRevision: before.modRevision, changed: false };
      }
      const modRevision = await write(before?.modRevision ?? 0n, JSON.stringify(after), begin?.());
      if (modRevision !== undefined) {
        const { signing, authorities, rotation } = after;
        log.info("authorities changed", { signing, trusted: authorities.length, rotation: rotation.state });
        return { record: after, modRevision, changed: true };
      }
    }
  }

  /** The revision of the write; undefined after a conflict with another writer. */
  async function write(before: bigint, value: string, unit: UnitOfWork | undefined): Promise<bigint | undefined> {
    if (unit === undefined) {
      const conditions = [{ key: authorityKey, modRevision: before }];
      const done = await store.commit({ conditions, puts: [{ key: authorityKey, value }], deletes: [] });
      return done.committed ? done.revision : undefined;
    }
    unit.replace(authorityKey, before, value);
    return unit.commit().catch((error: unknown) => {
      if (error instanceof Conflict) return undefined;
      throw error;
    });
  }

  async function newAuthority(suffix: string): Promise<StoredAuthority> {
    const keys = await newKeyPair();
    const now = clock.now();
    const notAfter = now + lifetimes.authorityMs;
    const name = `Holdfast ${installationId}${suffix}`;
    const der = await issueAuthority(name, keys, new Date(now - lifetimes.backdateMs), new Date(notAfter));
    return {
      fingerprint: fingerprintOf(der),
      certificate: Buffer.from(der).toString("base64"),
      sealedKey: sealer.seal(await exportKey(keys.privateKey), authorityKey),
      notAfter,
    };
  }

  async function load(from: { record: AuthorityRecord; modRevision: bigint }) {
    const { record, modRevision } = from;
    const stored = record.authorities.find((each) => each.fingerprint === record.signing);
    if (stored === undefined) throw new Error("the signing authority is not in the record");
    const der = Buffer.from(stored.certificate, "base64");
    const certificate = new X509Certificate(der);
    const signer: Signer = {
      certificate: der,
      subject: certificate.subject,
      publicKey: certificate.publicKey,
      key: await importKey(sealer.open(stored.sealedKey, authorityKey)),
    };
    return { record, modRevision, signer, signerExpiresAt: stored.notAfter, trustBundle: trustBundleOf(record) };
  }

  async function issue(
    leaf: Pick<Leaf, "commonName" | "publicKey" | "client"> & Partial<Leaf>,
    lifetimeMs: number,
  ): Promise<IssuedCertificate> {
    const { signer, signerExpiresAt, record } = current;
    const now = clock.now();
    const notBefore = new Date(now - lifetimes.backdateMs);
    const notAfter = new Date(Math.min(now + lifetimeMs, signerExpiresAt));
    const { der, serial } = await issueLeaf(signer, {
      uris: [],
      names: [],
      addresses: [],
      ...leaf,
      notBefore,
      notAfter,
    });
    return { chain: [der, signer.certificate], serial, notBefore, notAfter, generation: record.generation };
  }

  return {
    get trustBundle() {
      return current.trustBundle;
    },
    get fingerprint() {
      return current.record.signing;
    },
    get generation() {
      return current.record.generation;
    },
    get record() {
      return current.record;
    },
    async issueIdentity(csr, identity) {
      const uris = [identityUri(installationId, identity)];
      const publicKey = await provenKey(csr);
      return issue({ commonName: identity.id, publicKey, uris, client: true }, lifetimes.identityMs);
    },
    async issueServer(csr, names, member) {
      const [commonName] = member === undefined ? names : [member];
      if (commonName === undefined) throw new Error("a server certificate must have a name");
      // A common name has at most 64 characters (RFC 5280, ub-common-name); clients read the alternative names only.
      const short = commonName.length <= 64 ? commonName : "server";
      return issue(
        { commonName: short, publicKey: await provenKey(csr), names, client: member !== undefined },
        lifetimes.serverMs,
      );
    },
    async createIdentity(identity, names, addresses = []): Promise<KeyWithCertificate> {
      const keys = await newKeyPair();
      const uris = [identityUri(installationId, identity)];
      const leaf = { commonName: identity.id, publicKey: keys.publicKey, uris, names, addresses, client: true };
      const issued = await issue(leaf, lifetimes.identityMs);
      return {
        ...issued,
        privateKey: await exportKey(keys.privateKey),
        certificate: issued.chain.map(pemOf).join(""),
      };
    },
    async beginRotation(overlapMs, begin) {
      const now = clock.now();
      // A distinct name: clients build chains by name and could not distinguish two authorities with the same name.
      const added = await newAuthority(` ${now}`);
      const { changed } = await updateRecord(
        (before) => before && withSecondAuthority(before, added, now, now + overlapMs),
        begin,
      );
      await adoptNow();
      return changed;
    },
    async rotate(event, begin) {
      const { changed } = await updateRecord(
        (before) => before && afterRotationEvent(before, event, clock.now()),
        begin,
      );
      await adoptNow();
      return changed;
    },
    subscribe(onChange) {
      listeners.add(onChange);
      return {
        close: () => {
          listeners.delete(onChange);
        },
      };
    },
    close: () => watch.close(),
  };

  async function adoptNow(): Promise<void> {
    const value = await store.get(authorityKey);
    if (value !== undefined) await adopt(value);
  }
}
