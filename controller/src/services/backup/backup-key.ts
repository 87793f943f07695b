import { createCipheriv, createDecipheriv, randomBytes } from "node:crypto";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { defineKind } from "#kernel/store/kind.ts";
import { keyOf, newMetadata, type Resource } from "#kernel/store/resource.ts";
import { create } from "@bufbuild/protobuf";
import {
  type DataKey,
  DataKeySchema,
  type SourceBackup,
  SourceBackupSchema,
} from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { BackupObject } from "./backup.ts";

/**
 * The keys that wrap the data keys of one service's backups, by version; the id is the service's. Each version is
 * encrypted under the installation's master key and retained while a backup needs it.
 */
export type BackupKeyObject = Resource<BackupKeySpec, Readonly<Record<string, never>>>;

export const backupKeyKind = defineKind<BackupKeyObject>("backup-key");

export interface BackupKeySpec {
  /** Oldest first; the last one wraps new data keys. */
  readonly versions: readonly KeyVersion[];
}

export interface KeyVersion {
  readonly version: number;
  readonly sealedKey: string;
  readonly createdAt: number;
}

/** Age at which a key is rotated. */
export const keyLifetimeMs = 90 * 86_400_000;

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

/** The key with a new version, which wraps new data keys. */
export function rotated(key: BackupKeyObject, sealer: Sealer, now: number): BackupKeyObject {
  const { metadata, spec } = key;
  const next = newVersion(metadata.id, currentVersion(key).version + 1, sealer, now);
  return {
    ...key,
    metadata: { ...metadata, generation: metadata.generation + 1, updatedAt: now },
    spec: { versions: [...spec.versions, next] },
  };
}

/** The key without versions that no backup needs. The current version is always retained. */
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

/** A new random data key for one backup, wrapped under the current version. Only the wrapped form is stored. */
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

/**
 * The data key of a backup, 32 bytes. Throws if the version was deleted, and if the wrapped key was moved or changed.
 */
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
  return { version, sealedKey: sealer.seal(key, keyLabelOf(serviceId, version)), createdAt: now };
}

function openVersion({ metadata, spec }: BackupKeyObject, version: number, sealer: Sealer): Buffer {
  const found = spec.versions.find((each) => each.version === version);
  if (found === undefined) throw new Error(`version ${version} of the backup key of ${metadata.id} does not exist`);
  return Buffer.from(sealer.open(found.sealedKey, keyLabelOf(metadata.id, version)), "base64");
}

function keyLabelOf(serviceId: string, version: number): string {
  return `${keyOf(backupKeyKind, serviceId)}/${version}`;
}

function labelOf(serviceId: string, backupId: string, version: number): Buffer {
  return Buffer.from(`holdfast backup data key ${serviceId} ${backupId} ${version}`);
}

/** The message with an unwrapped data key of a backup or log, for a machine. */
export function dataKeyMessage(
  key: BackupKeyObject,
  sealed: { readonly id: string; readonly keyVersion: number; readonly wrappedKey: string },
  sealer: Sealer,
): DataKey {
  return create(DataKeySchema, { id: sealed.id, secret: openDataKey(key, sealed, sealer).toString("base64") });
}

/** The message that describes a stored backup to the agent that reads it. */
export function sourceBackup(
  { metadata: { id }, spec, status }: BackupObject,
  key: BackupKeyObject,
  sealer: Sealer,
): SourceBackup {
  const { attempt, manifestSha256 } = status;
  return create(SourceBackupSchema, {
    backupId: id,
    attempt,
    manifestSha256,
    key: dataKeyMessage(key, { id, ...spec }, sealer),
  });
}
