import { buffer } from "node:stream/consumers";
import {
  backupPrefix,
  keyObject,
  keysPrefix,
  logKeyObject,
  logKeysPrefix,
} from "@holdfast/common/backup/object-names.ts";
import { ObjectExists, type ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { LogKey } from "../archive/archive.ts";
import type { BackupKeyObject, KeyVersion } from "../backup-key.ts";
import type { BackupObject } from "../backup.ts";
import { objectsBelow } from "./stored-prefix.ts";

type Puts = Pick<ObjectStore, "put">;
type Reads = Pick<ObjectStore, "get" | "list">;

export const wrappedKeyObject = (serviceId: string, backupId: string) => `${backupPrefix(serviceId, backupId)}key`;

/** The stored object with a backup's wrapped data key: object store and master key suffice to decrypt the backup. */
export interface StoredDataKey {
  readonly service: string;
  readonly backup: string;
  readonly key_version: number;
  /** Nonce, ciphertext and tag of AES-256-GCM, base64. */
  readonly wrapped_key: string;
}

/** The stored object of one version of a service's key, encrypted under the installation's master key. */
interface StoredVersion {
  readonly service: string;
  readonly version: number;
  readonly sealed_key: string;
  readonly created_at: number;
}

/** The stored object of a data key of the log, wrapped like the data keys of backups. */
interface StoredLogKey {
  readonly service: string;
  readonly log_key: string;
  readonly key_version: number;
  readonly wrapped_key: string;
}

/** Stores a backup's wrapped data key, and the version of the service's key that wraps it. Idempotent. */
export async function storeKeys(objects: Puts, { metadata, spec }: BackupObject, key: BackupKeyObject): Promise<void> {
  const { serviceId, keyVersion, wrappedKey } = spec;
  await storeVersion(objects, key, keyVersion);
  const stored: StoredDataKey = {
    service: serviceId,
    backup: metadata.id,
    key_version: keyVersion,
    wrapped_key: wrappedKey,
  };
  await putOnce(objects, wrappedKeyObject(serviceId, metadata.id), stored);
}

/** Stores a data key of the log, and the version of the service's key that wraps it. Idempotent. */
export async function storeLogKey(objects: Puts, log: LogKey, key: BackupKeyObject): Promise<void> {
  const { keyId, keyVersion, wrappedKey } = log;
  const { id: service } = key.metadata;
  await storeVersion(objects, key, keyVersion);
  const stored: StoredLogKey = { service, log_key: keyId, key_version: keyVersion, wrapped_key: wrappedKey };
  await putOnce(objects, logKeyObject(service, keyId), stored);
}

async function storeVersion(objects: Puts, { metadata, spec }: BackupKeyObject, keyVersion: number): Promise<void> {
  const { id: service } = metadata;
  const found = spec.versions.find(({ version }) => version === keyVersion);
  if (found === undefined) throw new Error(`version ${keyVersion} of the backup key of ${service} does not exist`);
  const { version, sealedKey, createdAt } = found;
  const stored: StoredVersion = { service, version, sealed_key: sealedKey, created_at: createdAt };
  await putOnce(objects, keyObject(service, version), stored);
}

/** The stored data key of a backup; throws if it is missing. */
export async function readStoredKey(
  objects: Pick<ObjectStore, "get">,
  { metadata, spec }: BackupObject,
): Promise<StoredDataKey> {
  const found = await read<StoredDataKey>(objects, wrappedKeyObject(spec.serviceId, metadata.id));
  if (found === undefined) throw new Error("the backup's key is not in the store");
  return found;
}

/** All stored versions of a service's key, oldest first. */
export async function readKeyVersions(objects: Reads, serviceId: string): Promise<KeyVersion[]> {
  const versions: KeyVersion[] = [];
  for await (const { key } of objectsBelow(objects, keysPrefix(serviceId))) {
    const stored = await read<StoredVersion>(objects, key);
    if (stored === undefined) continue;
    const { version, sealed_key: sealedKey, created_at: createdAt } = stored;
    versions.push({ version, sealedKey, createdAt });
  }
  return versions.toSorted((a, b) => a.version - b.version);
}

/** All stored data keys of a service's log. */
export async function readLogKeys(objects: Reads, serviceId: string): Promise<LogKey[]> {
  const keys: LogKey[] = [];
  for await (const { key } of objectsBelow(objects, logKeysPrefix(serviceId))) {
    const stored = await read<StoredLogKey>(objects, key);
    if (stored === undefined) continue;
    keys.push({ keyId: stored.log_key, keyVersion: stored.key_version, wrappedKey: stored.wrapped_key });
  }
  return keys;
}

async function read<T>(objects: Pick<ObjectStore, "get">, key: string): Promise<T | undefined> {
  const found = await objects.get(key);
  return found === undefined ? undefined : (JSON.parse((await buffer(found)).toString("utf8")) as T);
}

async function putOnce(objects: Puts, key: string, value: unknown): Promise<void> {
  async function* body() {
    yield Buffer.from(JSON.stringify(value));
  }
  try {
    await objects.put(key, body(), { ifAbsent: true });
  } catch (error) {
    if (!(error instanceof ObjectExists)) throw error;
  }
}
