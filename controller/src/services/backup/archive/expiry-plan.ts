import { type ArchiveObject, type LogRange, settingsOf } from "./archive.ts";
import { expired, pastRetention } from "./backup-retention.ts";
import { type BackupObject, hasEnded, isVisible } from "../backup.ts";
import { rangesToDelete, rangesSince } from "../log/log-archive.ts";

/** Observed state that decides what of an archive expires. */
export interface ObservedExpiry {
  readonly archive: ArchiveObject;
  /** True if the service is not deleted. */
  readonly serviceExists: boolean;
  /** Oldest first. */
  readonly backups: readonly BackupObject[];
  /** True if a restore reads the backup now. */
  readonly isRead: (backup: BackupObject) => boolean;
}

/** A part of an archive whose time is over. */
export type DueExpiry =
  | { readonly kind: "backup"; readonly backup: BackupObject; readonly isRead: boolean }
  | { readonly kind: "log"; readonly range: LogRange; readonly objects: number }
  | { readonly kind: "archive" };

/** Everything that has expired at the moment `at`, in the order of deletion. */
export function dueExpiry(observed: ObservedExpiry, at: number): DueExpiry[] {
  const { archive, serviceExists, backups, isRead } = observed;
  const ended = endedAt(observed, at);
  const removed = new Set(ended.filter((backup) => !isRead(backup)));
  const retained = backups.filter((backup) => isVisible(backup) && !removed.has(backup));
  const settings = settingsOf(archive.metadata.id, archive);
  const past = new Set(pastRetention(archive, backups, settings, at).filter((backup) => !isRead(backup)));
  const due = ended.map((backup): DueExpiry => ({ kind: "backup", backup, isRead: isRead(backup) }));
  if (serviceExists)
    return [
      ...due,
      ...endedLog(
        archive,
        retained.filter((backup) => !past.has(backup)),
      ),
    ];
  const { deleted } = archive.status;
  const canReturn = deleted !== null && deleted.until > at;
  return retained.length > 0 || canReturn ? due : [...due, { kind: "archive" }];
}

function endedAt({ archive, serviceExists, backups }: ObservedExpiry, at: number): BackupObject[] {
  const settings = settingsOf(archive.metadata.id, archive);
  if (serviceExists || archive.status.deleted !== null) return expired(archive, backups, settings, at);
  return backups.filter((backup) => backup.spec.backupType === "automated" && hasEnded(backup) && isVisible(backup));
}

/** Log that no retained base backup needs. */
function endedLog({ spec, status }: ArchiveObject, retained: readonly BackupObject[]): DueExpiry[] {
  if (spec.log === null) return [];
  const oldest = retained.find((backup) => backup.status.state === "completed");
  const after = rangesSince(status.log, spec.log, oldest?.status.startedAt ?? undefined);
  return rangesToDelete(status.log, after).map(({ range, end }) => ({
    kind: "log",
    range,
    objects: end - range.firstSequence,
  }));
}
