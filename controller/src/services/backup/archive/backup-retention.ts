import { type ArchiveObject, type BackupSettings, type LogRange, settingsOf } from "./archive.ts";
import { type BackupObject, hasEnded, isVisible } from "../backup.ts";
import { basesOf } from "../backup-chain.ts";
import { rangesToDelete, rangesSince } from "../log/log-archive.ts";

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

/** State of an archive and its backups that decides what expires. */
export interface ObservedExpiry {
  readonly archive: ArchiveObject;
  /** True if the service is not deleted. */
  readonly serviceExists: boolean;
  /** All backups of the service, oldest first. */
  readonly backups: readonly BackupObject[];
  /** True if a restore reads the backup now. */
  readonly isRead: (backup: BackupObject) => boolean;
}

/** An expired part of an archive. */
export type DueExpiry =
  | { readonly kind: "backup"; readonly backup: BackupObject; readonly isRead: boolean }
  | { readonly kind: "log"; readonly range: LogRange; readonly objects: number }
  | { readonly kind: "archive" };

/** All parts that have expired at the time `at` (milliseconds since 1970), in the order of deletion. */
export function dueExpiry(observed: ObservedExpiry, at: number): DueExpiry[] {
  const { archive, serviceExists, backups, isRead } = observed;
  const expiredNow = expiredBackups(observed, at);
  const removed = new Set(expiredNow.filter((backup) => !isRead(backup)));
  const retained = backups.filter((backup) => isVisible(backup) && !removed.has(backup));
  const settings = settingsOf(archive.metadata.id, archive);
  const past = new Set(pastRetention(archive, backups, settings, at).filter((backup) => !isRead(backup)));
  const due = expiredNow.map((backup): DueExpiry => ({ kind: "backup", backup, isRead: isRead(backup) }));
  if (serviceExists)
    return [
      ...due,
      ...expiredLog(
        archive,
        retained.filter((backup) => !past.has(backup)),
      ),
    ];
  const { deleted } = archive.status;
  const canReturn = deleted !== null && deleted.until > at;
  return retained.length > 0 || canReturn ? due : [...due, { kind: "archive" }];
}

function expiredBackups({ archive, serviceExists, backups }: ObservedExpiry, at: number): BackupObject[] {
  const settings = settingsOf(archive.metadata.id, archive);
  if (serviceExists || archive.status.deleted !== null) return expired(archive, backups, settings, at);
  return backups.filter((backup) => backup.spec.backupType === "automated" && hasEnded(backup) && isVisible(backup));
}

/** Log that no retained base backup needs. */
function expiredLog({ spec, status }: ArchiveObject, retained: readonly BackupObject[]): DueExpiry[] {
  if (spec.log === null) return [];
  const oldest = retained.find((backup) => backup.status.state === "completed");
  const after = rangesSince(status.log, spec.log, oldest?.status.startedAt ?? undefined);
  return rangesToDelete(status.log, after).map(({ range, end }) => ({
    kind: "log",
    range,
    objects: end - range.firstSequence,
  }));
}
