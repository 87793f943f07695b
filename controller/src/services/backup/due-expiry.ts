import { type ArchiveObject, type LogRange, settingsOf } from "./archive.ts";
import { expired, pastRetention } from "./backup-retention.ts";
import { type BackupObject, hasEnded, isShown } from "./backup.ts";
import { leaving, rangesSince } from "./log-archive.ts";

/** All that decides what of a service's archive ends at a time. */
export interface ExpiryWorld {
  readonly archive: ArchiveObject;
  /** Is the service itself there? */
  readonly isThere: boolean;
  /** Oldest first. */
  readonly backups: readonly BackupObject[];
  /** Is something restored out of it now? */
  readonly isRead: (backup: BackupObject) => boolean;
}

/** Something whose time is over. */
export type DueExpiry =
  | { readonly kind: "backup"; readonly backup: BackupObject; readonly isRead: boolean }
  | { readonly kind: "log"; readonly range: LogRange; readonly objects: number }
  | { readonly kind: "archive" };

/** Pure: all that ends once time has come to `at`, in the order in which it goes. */
export function dueExpiry(world: ExpiryWorld, at: number): DueExpiry[] {
  const { archive, isThere, backups, isRead } = world;
  const over = overAt(world, at);
  const gone = new Set(over.filter((backup) => !isRead(backup)));
  const kept = backups.filter((backup) => isShown(backup) && !gone.has(backup));
  const settings = settingsOf(archive.metadata.id, archive);
  const past = new Set(pastRetention(archive, backups, settings, at).filter((backup) => !isRead(backup)));
  const due = over.map((backup): DueExpiry => ({ kind: "backup", backup, isRead: isRead(backup) }));
  if (isThere)
    return [
      ...due,
      ...logOver(
        archive,
        kept.filter((backup) => !past.has(backup)),
      ),
    ];
  const { deleted } = archive.status;
  const canReturn = deleted !== null && deleted.until > at;
  return kept.length > 0 || canReturn ? due : [...due, { kind: "archive" }];
}

function overAt({ archive, isThere, backups }: ExpiryWorld, at: number): BackupObject[] {
  const settings = settingsOf(archive.metadata.id, archive);
  if (isThere || archive.status.deleted !== null) return expired(archive, backups, settings, at);
  return backups.filter((backup) => backup.spec.backupType === "automated" && hasEnded(backup) && isShown(backup));
}

/** What no base needs that is kept. */
function logOver({ spec, status }: ArchiveObject, kept: readonly BackupObject[]): DueExpiry[] {
  if (spec.log === null) return [];
  const oldest = kept.find((backup) => backup.status.state === "completed");
  const after = rangesSince(status.log, spec.log, oldest?.status.startedAt ?? undefined);
  return leaving(status.log, after).map(({ range, end }) => ({
    kind: "log",
    range,
    objects: end - range.firstSequence,
  }));
}
