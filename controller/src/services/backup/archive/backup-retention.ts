import type { ArchiveObject, BackupSettings } from "./archive.ts";
import { type BackupObject, hasEnded, isVisible } from "../backup.ts";
import { basesOf } from "../backup-chain.ts";

const dayMs = 86_400_000;

/** Time at which the retention of a backup ends; null for manual backups and for unfinished ones. */
export function expiresAtOf(backup: BackupObject, { retentionDays }: BackupSettings): number | null {
  const { finishedAt } = backup.status;
  if (backup.spec.backupType === "manual" || finishedAt === null) return null;
  return finishedAt + retentionDays * dayMs;
}

/**
 * Automated backups that have expired. The newest completed backup of an existing service never expires, so that a
 * failing schedule does not lose the last valid backup. Backups that others depend on are retained too.
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

/** Backups past their retention, including those that are retained only because an increment depends on them. */
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

/** Time at which the backup is deleted: not before the last increment that depends on it. */
export function deletedAtOf(
  backup: BackupObject,
  backups: readonly BackupObject[],
  settings: BackupSettings,
): number | null {
  const expiresAt = expiresAtOf(backup, settings);
  if (expiresAt === null) return null;
  const get = (id: string) => backups.find(({ metadata }) => metadata.id === id);
  const after = backups.filter((each) => isVisible(each) && basesOf([each], get).has(backup.metadata.id));
  return Math.max(expiresAt, ...after.map((each) => expiresAtOf(each, settings) ?? expiresAt));
}
