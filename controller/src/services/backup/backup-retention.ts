import type { ArchiveObject } from "./archive.ts";
import { type BackupObject, hasEnded, isShown } from "./backup.ts";
import { basesOf } from "./backup-chain.ts";
import type { BackupSettings } from "./backup-settings.ts";

const dayMs = 86_400_000;

/** Pure: when retention ends a backup; null for one that stays until it is deleted, or has not ended. */
export function expiresAtOf(backup: BackupObject, { retentionDays }: BackupSettings): number | null {
  const { finishedAt } = backup.status;
  if (backup.spec.backupType === "manual" || finishedAt === null) return null;
  return finishedAt + retentionDays * dayMs;
}

/**
 * Pure: automated backups that retention ends now. The newest completed one of a service that is there stays whatever its age:
 * a schedule that fails for a while costs no last good backup. So does what a backup that stays, or is taken, goes on from.
 */
export function expired(
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
  now: number,
): BackupObject[] {
  const over = pastRetention(archive, backups, settings, now);
  const isOver = new Set(over);
  const kept = backups.filter((backup) => isShown(backup) && backup.status.state !== "failed" && !isOver.has(backup));
  const needed = basesOf(kept, (id) => backups.find(({ metadata }) => metadata.id === id));
  return over.filter(({ metadata }) => !needed.has(metadata.id));
}

/** Pure: those whose time is over, though an increment that is kept may need them still. */
export function pastRetention(
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
  now: number,
): BackupObject[] {
  const { deleted } = archive.status;
  const newest = backups.findLast(({ status }) => status.state === "completed");
  return backups.filter((backup) => {
    if (!hasEnded(backup) || !isShown(backup) || backup.spec.backupType === "manual") return false;
    if (deleted !== null) return deleted.until <= now;
    const expiresAt = expiresAtOf(backup, settings);
    return backup !== newest && expiresAt !== null && expiresAt <= now;
  });
}

/** Pure: when it goes: with the last of the increments that need it. */
export function leavesAt(
  backup: BackupObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
): number | null {
  const own = expiresAtOf(backup, settings);
  if (own === null) return null;
  const get = (id: string) => backups.find(({ metadata }) => metadata.id === id);
  const after = backups.filter((each) => isShown(each) && basesOf([each], get).has(backup.metadata.id));
  return Math.max(own, ...after.map((each) => expiresAtOf(each, settings) ?? own));
}
