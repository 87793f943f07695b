import { type ArchiveObject, type LogRange, settingsOf } from "./archive.ts";
import { expired, pastRetention } from "./backup-retention.ts";
import { type BackupObject, hasEnded, isVisible } from "../backup.ts";
import { rangesToDelete, rangesSince } from "../log/log-archive.ts";

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
