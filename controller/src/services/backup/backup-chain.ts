import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ArchiveObject, settingsOf } from "./archive.ts";
import { type BackupObject, hasEnded, isShown } from "./backup.ts";

type GetBackup = (id: string) => BackupObject | undefined;

const dayMs = 86_400_000;
/** A full one is taken so often at least; the day's time may be a little early. */
const fullEveryDays = 7;
const earlyMs = dayMs / 2;

/** Pure: a backup with all that it goes on from, the full one first. Undefined when something of it is not there. */
export function chainOf(backup: BackupObject, get: GetBackup): readonly BackupObject[] | undefined {
  const chain = [backup];
  for (let { baseId } = backup.spec; baseId !== undefined; baseId = chain[0]?.spec.baseId) {
    const base = get(baseId);
    if (base === undefined) return undefined;
    chain.unshift(base);
  }
  return chain;
}

/** Pure: the ids of all that these backups go on from. */
export function basesOf(backups: Iterable<BackupObject>, get: GetBackup): Set<string> {
  const found = new Set<string>();
  for (const { spec } of backups)
    for (let { baseId } = spec; baseId !== undefined && !found.has(baseId); baseId = get(baseId)?.spec.baseId)
      found.add(baseId);
  return found;
}

/** Pure: can an increment of the service as it is now be taken since this backup, and be restored? */
export function isBase(backup: BackupObject, service: ManagedServiceObject, get: GetBackup): boolean {
  const { spec, status } = backup;
  // Another term makes no difference: pages are compared by what is in them, whichever member they are read of.
  if (spec.version !== service.spec.version || status.hasPageMap !== true) return false;
  const chain = chainOf(backup, get) ?? [];
  const isWhole = (each: BackupObject) =>
    isShown(each) && each.status.state === "completed" && each.status.damage === undefined;
  return chain.length > 0 && chain.every(isWhole);
}

/**
 * Pure: what the next daily backup is taken since; undefined when it is to be a full one. That is so once a week, or as often as
 * retention ends one; after a failure; and when the last one cannot be gone on from.
 */
export function nextBase(
  service: ManagedServiceObject,
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  now: number,
): BackupObject | undefined {
  if (engineOf(service.spec.databaseType)?.backups?.increments !== true) return undefined;
  const last = backups.findLast((backup) => backup.spec.backupType === "automated" && hasEnded(backup));
  const get = (id: string) => backups.find(({ metadata }) => metadata.id === id);
  if (last === undefined || !isBase(last, service, get)) return undefined;
  const fullAt = chainOf(last, get)?.[0]?.metadata.createdAt ?? 0;
  const { retentionDays } = settingsOf(archive.metadata.id, archive);
  const longestMs = Math.min(fullEveryDays, retentionDays) * dayMs - earlyMs;
  return now - fullAt < longestMs ? last : undefined;
}
