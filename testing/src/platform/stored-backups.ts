import { join } from "node:path";
import { type BackupReader, openBackup } from "@holdfast/common/backup/backup-reader.ts";
import { backupPrefix, manifestObject } from "@holdfast/common/backup/object-names.ts";
import { createDirectoryStore } from "@holdfast/common/objects/directory-store.ts";
import type { ObjectStore } from "@holdfast/common/objects/object-store.ts";
import { newBackupObject } from "@holdfast/controller/services/backup/backup.ts";
import { openDataKey } from "@holdfast/controller/services/backup/backup-key.ts";
import { readKeyVersions, readStoredKey } from "@holdfast/controller/services/backup/objects/stored-key.ts";
import { readKeyring, createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { newMetadata } from "@holdfast/controller/kernel/store/resource.ts";
import type { Platform } from "./platform.ts";

/** The objects of an installation that stores them in its own directory. */
export function objectsOf({ directory }: Pick<Platform, "directory">): ObjectStore {
  return createDirectoryStore(join(directory, "objects"));
}

/** Names of all objects below the prefix. */
export async function namesBelow(objects: ObjectStore, prefix: string): Promise<string[]> {
  const { objects: stored, more } = await objects.list(prefix, { limit: 1_000 });
  if (more) throw new Error(`there is too much below ${prefix}`);
  return stored.map(({ key }) => key);
}

/** A completed backup, opened with nothing but the store and the master key. */
export async function openStoredBackup(
  platform: Pick<Platform, "directory">,
  service: string,
  backup: string,
): Promise<BackupReader> {
  const objects = objectsOf(platform);
  const names = await namesBelow(objects, backupPrefix(service, backup));
  const attempts = names.filter((name) => name.endsWith("/manifest")).map((name) => Number(name.split("/").at(-2)));
  const target = { service, backup, attempt: Math.max(...attempts) };
  if (!names.includes(manifestObject(target))) throw new Error(`${backup} is not complete`);
  const unknown = { databaseType: "", version: "", operationId: "", keyVersion: 0, wrappedKey: "" };
  const backupObject = {
    serviceId: service,
    backupType: "manual",
    kind: "full",
    trigger: "request",
    ...unknown,
  } as const;
  const stored = await readStoredKey(objects, newBackupObject(backup, "", backupObject, 0));
  const versions = await readKeyVersions(objects, service);
  const key = { metadata: newMetadata(service, 0, { organizationId: "" }), spec: { versions }, status: {} };
  const sealer = createSealer(await readKeyring(join(platform.directory, "keys", "master-key.json")));
  const wrapped = { id: backup, keyVersion: stored.key_version, wrappedKey: stored.wrapped_key };
  return openBackup({
    location: target,
    key: { id: backup, secret: openDataKey(key, wrapped, sealer) },
    get: objects.get,
  });
}
