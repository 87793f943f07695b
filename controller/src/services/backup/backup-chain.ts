import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ArchiveObject, settingsOf } from "./archive/archive.ts";
import { type BackupObject, hasEnded, isVisible } from "./backup.ts";

type GetBackup = (id: string) => BackupObject | undefined;

const dayMs = 86_400_000;
/** Interval of full backups; half a day of tolerance, because a daily backup may begin earlier than the one before. */
const fullIntervalDays = 7;
const toleranceMs = dayMs / 2;

/** A backup with all backups that it depends on, the full one first. Undefined if one of them is missing. */
export function chainOf(backup: BackupObject, get: GetBackup): readonly BackupObject[] | undefined {
  const chain = [backup];
  for (let { baseId } = backup.spec; baseId !== undefined; baseId = chain[0]?.spec.baseId) {
    const base = get(baseId);
    if (base === undefined) return undefined;
    chain.unshift(base);
  }
  return chain;
}

/** The backups that are intact, as are all backups that they depend on. */
export function withoutDamaged(backups: readonly BackupObject[]): readonly BackupObject[] {
  const damaged = new Set(backups.filter(({ status }) => status.isDamaged === true).map(({ metadata }) => metadata.id));
  if (damaged.size === 0) return backups;
  const get = (id: string) => backups.find(({ metadata }) => metadata.id === id);
  const isDamaged = (backup: BackupObject) =>
    damaged.has(backup.metadata.id) || [...basesOf([backup], get)].some((id) => damaged.has(id));
  return backups.filter((backup) => !isDamaged(backup));
}

/** The ids of all backups that these depend on. */
export function basesOf(backups: Iterable<BackupObject>, get: GetBackup): Set<string> {
  const found = new Set<string>();
  for (const { spec } of backups)
    for (let { baseId } = spec; baseId !== undefined && !found.has(baseId); baseId = get(baseId)?.spec.baseId)
      found.add(baseId);
  return found;
}

/** True if an increment of the service can be taken relative to this backup, and restored. */
export function canBeBase(backup: BackupObject, service: ManagedServiceObject, get: GetBackup): boolean {
  const { spec, status } = backup;
  // The term does not matter: pages are compared by content, so any member's pages can be compared.
  if (spec.version !== service.spec.version || status.hasPageMap !== true) return false;
  const chain = chainOf(backup, get) ?? [];
  const isComplete = (each: BackupObject) =>
    isVisible(each) && each.status.state === "completed" && each.status.damage === undefined;
  return chain.length > 0 && chain.every(isComplete);
}

/**
 * The base of the next daily backup; undefined if that is a full backup: once a week (more often under a shorter
 * retention), after a failure, and if the last backup cannot be a base.
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
  if (last === undefined || !canBeBase(last, service, get)) return undefined;
  const fullAt = chainOf(last, get)?.[0]?.metadata.createdAt ?? 0;
  const { retentionDays } = settingsOf(archive.metadata.id, archive);
  const longestMs = Math.min(fullIntervalDays, retentionDays) * dayMs - toleranceMs;
  return now - fullAt < longestMs ? last : undefined;
}
