import { BackupDamaged, type BackupReaderDeps, openBackup, openChain } from "@holdfast/common/backup/backup-reader.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type BackupKeyObject, openDataKey } from "./backup-key.ts";
import type { BackupObject } from "./backup.ts";
import { readStoredKey, wrappedKeyObject } from "./objects/stored-key.ts";

export interface BackupCheckDeps {
  readonly objects: Pick<ObjectStore, "get" | "head">;
  readonly sealer: Sealer;
}

/**
 * Reads a stored backup as a restore would, with the keys stored beside it and the backups that it depends on (`chain`,
 * the full one first). `sample` checks all manifests and, of the backup itself, the size of every part and the content
 * of each stream's first and last part; `all` reads every byte of the chain. Throws BackupDamaged, or the store's
 * error.
 */
export async function checkBackup(
  chain: readonly BackupObject[],
  key: BackupKeyObject,
  extent: "all" | "sample",
  deps: BackupCheckDeps,
  onProgress?: (bytes: number) => void,
): Promise<void> {
  const { objects } = deps;
  const stored = await Promise.all(chain.map((backup) => storedBackup(backup, key, deps)));
  const readers = await openChain(stored);
  if (extent === "sample")
    for (const { streams, maps = [] } of readers.slice(-1).map(({ manifest }) => manifest))
      for (const { object, bytes } of [...streams, ...maps].flatMap(({ parts }) => parts)) {
        const facts = await objects.head(object);
        if (facts?.sizeBytes !== bytes)
          throw new Error(facts === undefined ? `${object} is not in the store` : `${object} is not as it was written`);
      }
  let before = 0;
  for (const reader of extent === "sample" ? readers.slice(-1) : readers) {
    let verified = 0;
    await reader.verify(extent, (bytes) => onProgress?.(before + (verified = bytes)));
    before += verified;
  }
}

async function storedBackup(
  backup: BackupObject,
  key: BackupKeyObject,
  { objects, sealer }: BackupCheckDeps,
): Promise<BackupReaderDeps> {
  const { serviceId: service } = backup.spec;
  const { id } = backup.metadata;
  const { attempt, manifestSha256 } = backup.status;
  const stored = await readStoredKey(objects, backup);
  const secret = openDataKey(key, { id, keyVersion: stored.key_version, wrappedKey: stored.wrapped_key }, sealer);
  return { location: { service, backup: id, attempt }, key: { id, secret }, get: objects.get, manifestSha256 };
}

/**
 * Returns a predicate that is true for objects that belong to a completed backup. The last attempt may have reused
 * objects of earlier attempts, so the manifest is read. If the manifest is damaged, every object belongs to the backup.
 */
export async function ownObjects(
  backup: BackupObject,
  key: BackupKeyObject,
  deps: BackupCheckDeps,
): Promise<(object: string) => boolean> {
  try {
    const { objects } = await openBackup(await storedBackup(backup, key, deps));
    const wrappedKey = wrappedKeyObject(backup.spec.serviceId, backup.metadata.id);
    return (object) => object === wrappedKey || objects.has(object);
  } catch (error) {
    if (error instanceof BackupDamaged) return () => true;
    throw error;
  }
}
