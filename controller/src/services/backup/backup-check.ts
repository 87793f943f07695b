import { openChain } from "@holdfast/common/backup/backup-chain.ts";
import { BackupDamaged, type BackupReaderDeps, openBackup } from "@holdfast/common/backup/backup-reader.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import { type BackupKeyObject, openDataKey } from "./backup-key.ts";
import type { BackupObject } from "./backup.ts";
import { readStoredKey, wrappedKeyObject } from "./stored-key.ts";

export interface BackupCheckDeps {
  readonly objects: Pick<ObjectStore, "get" | "head">;
  readonly sealer: Sealer;
}

/**
 * Reads a backup again as a restore would, with the keys that are stored beside it and what it goes on from, the full one first. A
 * sample is all manifests, and of the backup itself the size of every part and of each stream the first and the last part; all is
 * every byte of the chain. Resolves when that is as it was written; throws BackupDamaged, or what the store throws.
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
    let own = 0;
    await reader.verify(extent, (bytes) => onProgress?.(before + (own = bytes)));
    before += own;
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
  return { place: { service, backup: id, attempt }, key: { id, secret }, get: objects.get, manifestSha256 };
}

/**
 * Tells all that belongs to a completed backup, whose last attempt may have taken over what others stored: its manifest is opened for
 * it. Of one that is damaged all may.
 */
export async function belongingTo(
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
