import type { ArchiveObject, BackupSettings } from "./archive.ts";
import { type BackupObject, hasEnded, isVisible } from "../backup.ts";
import { basesOf } from "../backup-chain.ts";

const dayMs = 86_400_000;

/** Time at which a backup's own retention ends; null for manual backups, and before it ended. */
export function expiresAtOf(backup: BackupObject, { retentionDays }: BackupSettings): number | null {
  const { finishedAt } = backup.status;
  if (backup.spec.backupType === "manual" || finishedAt === null) return null;
  return finishedAt + retentionDays * dayMs;
}

/**
 * Automated backups that retention ends now. The newest completed one of an existing service stays at any age, so
 * that a failing schedule does not lose the last valid backup. Backups that others depend on stay too.
 */
export function expired(
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
  now: number,
): BackupObject[] {
  const ended = pastRetention(archive, backups, settings, now);
  const endedBackups = new Set(ended);
  const retained = backups.filter(
    (backup) => isVisible(backup) && backup.status.state !== "failed" && !endedBackups.has(backup),
  );
  const needed = basesOf(retained, (id) => backups.find(({ metadata }) => metadata.id === id));
  return ended.filter(({ metadata }) => !needed.has(metadata.id));
}

/** Backups past their own retention, though a retained increment may still depend on them. */
export function pastRetention(
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
  now: number,
): BackupObject[] {
  const { deleted } = archive.status;
  const newest = backups.findLast(({ status }) => status.state === "completed");
  return backups.filter((backup) => {
    if (!hasEnded(backup) || !isVisible(backup) || backup.spec.backupType === "manual") return false;
    if (deleted !== null) return deleted.until <= now;
    const expiresAt = expiresAtOf(backup, settings);
    return backup !== newest && expiresAt !== null && expiresAt <= now;
  });
}

/** Time at which the backup is deleted, which is when the last increment that depends on it is. */
export function deletedAtOf(
  backup: BackupObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
): number | null {
  const own = expiresAtOf(backup, settings);
  if (own === null) return null;
  const get = (id: string) => backups.find(({ metadata }) => metadata.id === id);
  const after = backups.filter((each) => isVisible(each) && basesOf([each], get).has(backup.metadata.id));
  return Math.max(own, ...after.map((each) => expiresAtOf(each, settings) ?? own));
}
