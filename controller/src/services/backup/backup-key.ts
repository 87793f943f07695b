import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";

/**
 * The keys that wrap the data keys of one service's backups, by version; its id is the service's. Each is sealed under the
 * installation's master key. A version stays for as long as a backup is wrapped under it.
 */
export type BackupKeyObject = Resource<BackupKeySpec, Readonly<Record<string, never>>>;

export const backupKeyKind = defineKind<BackupKeyObject>("backup-key");

export interface BackupKeySpec {
  /** Oldest first; the last one wraps what is new. */
  readonly versions: readonly KeyVersion[];
}

export interface KeyVersion {
  readonly version: number;
  readonly sealedKey: string;
  readonly createdAt: number;
}

/** A key that old is replaced. */
export const keyLifeMs = 90 * 86_400_000;

const keyBytes = 32;
const nonceBytes = 12;
const tagBytes = 16;

/** A service's first key. */
export function newBackupKey(serviceId: string, organizationId: string, sealer: Sealer, now: number): BackupKeyObject {
  return {
    metadata: newMetadata(serviceId, now, { organizationId }),
    spec: { versions: [newVersion(serviceId, 1, sealer, now)] },
    status: {},
  };
}

/** The same with another version, which wraps from now on. */
export function rotated(key: BackupKeyObject, sealer: Sealer, now: number): BackupKeyObject {
  const { metadata, spec } = key;
  const next = newVersion(metadata.id, currentVersion(key).version + 1, sealer, now);
  return {
    ...key,
    metadata: { ...metadata, generation: metadata.generation + 1, updatedAt: now },
    spec: { versions: [...spec.versions, next] },
  };
}

/** The same without versions that nothing needs; the current one always stays. */
export function withoutUnused(key: BackupKeyObject, needed: ReadonlySet<number>): BackupKeyObject {
  const { version: current } = currentVersion(key);
  const versions = key.spec.versions.filter(({ version }) => version === current || needed.has(version));
  return versions.length === key.spec.versions.length ? key : { ...key, spec: { versions } };
}

export function currentVersion({ metadata, spec }: BackupKeyObject): KeyVersion {
  const current = spec.versions.at(-1);
  if (current === undefined) throw new Error(`the backup key of ${metadata.id} has no version`);
  return current;
}

/** A fresh data key for one backup, as it is kept: wrapped under the current version. */
export function newDataKey(
  key: BackupKeyObject,
  backupId: string,
  sealer: Sealer,
): { readonly keyVersion: number; readonly wrappedKey: string } {
  const { version } = currentVersion(key);
  const nonce = randomBytes(nonceBytes);
  const cipher = createCipheriv("aes-256-gcm", openVersion(key, version, sealer), nonce);
  cipher.setAAD(labelOf(key.metadata.id, backupId, version));
  const sealed = Buffer.concat([cipher.update(randomBytes(keyBytes)), cipher.final()]);
  return { keyVersion: version, wrappedKey: Buffer.concat([nonce, sealed, cipher.getAuthTag()]).toString("base64") };
}

/** The data key of a backup, 32 bytes. Throws for a version that is not there any more, and for what was moved or changed. */
export function openDataKey(
  key: BackupKeyObject,
  { id, keyVersion, wrappedKey }: { readonly id: string; readonly keyVersion: number; readonly wrappedKey: string },
  sealer: Sealer,
): Buffer {
  const bytes = Buffer.from(wrappedKey, "base64");
  const decipher = createDecipheriv("aes-256-gcm", openVersion(key, keyVersion, sealer), bytes.subarray(0, nonceBytes));
  decipher.setAAD(labelOf(key.metadata.id, id, keyVersion));
  decipher.setAuthTag(bytes.subarray(-tagBytes));
  return Buffer.concat([decipher.update(bytes.subarray(nonceBytes, -tagBytes)), decipher.final()]);
}

function newVersion(serviceId: string, version: number, sealer: Sealer, now: number): KeyVersion {
  const key = randomBytes(keyBytes).toString("base64");
  return { version, sealedKey: sealer.seal(key, placeOf(serviceId, version)), createdAt: now };
}

function openVersion({ metadata, spec }: BackupKeyObject, version: number, sealer: Sealer): Buffer {
  const found = spec.versions.find((each) => each.version === version);
  if (found === undefined) throw new Error(`version ${version} of the backup key of ${metadata.id} is gone`);
  return Buffer.from(sealer.open(found.sealedKey, placeOf(metadata.id, version)), "base64");
}

function placeOf(serviceId: string, version: number): string {
  return `${keyOf(backupKeyKind, serviceId)}/${version}`;
}

function labelOf(serviceId: string, backupId: string, version: number): Buffer {
  return Buffer.from(`holdfast backup data key ${serviceId} ${backupId} ${version}`);
}
