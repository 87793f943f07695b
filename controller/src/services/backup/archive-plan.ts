import { hash } from "#kernel/runtime/ownership.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { type ArchiveObject, settingsOf } from "./archive.ts";
import { type BackupObject, type BackupSpec, hasEnded } from "./backup.ts";
import { currentRange } from "./log-archive.ts";
import { nextDaily } from "./backup-settings.ts";
import { logAfter } from "./restorable.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** A service that is older than this when its archive begins was there before backups were. */
const newForMs = hourMs;
/** After a failure the next one does not wait for tomorrow. */
const retryAfterMs = hourMs;
const finalRetryMs = minuteMs;

/** Pure: when the first backup of a service is due. First backups that become due together are spread over a day. */
export function firstDueAt({ metadata }: ManagedServiceObject, afterMs: number, now: number): number {
  const isNew = now - metadata.createdAt < newForMs;
  return now + (isNew ? afterMs : hash(`first-backup/${metadata.id}`) % dayMs);
}

/** What is due of a service's automated backups, or when that is. */
export type Due =
  | { readonly kind: "now"; readonly trigger: BackupSpec["trigger"] }
  | { readonly kind: "at"; readonly at: number }
  | { readonly kind: "none" };

/** Pure: `backups` are all of the service, oldest first. */
export function dueBackup(
  service: ManagedServiceObject,
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  { now, finalBackupWithinMs }: { readonly now: number; readonly finalBackupWithinMs: number },
): Due {
  const automated = backups.filter(({ spec }) => spec.backupType === "automated");
  if (service.metadata.deletionRequestedAt !== undefined) {
    const isOver = now - service.metadata.deletionRequestedAt > finalBackupWithinMs;
    return dueFinal(service, automated, now, isOver);
  }
  if (automated.some((backup) => !hasEnded(backup))) return { kind: "none" };
  const isDueSooner = !isCovered(archive, backups) || isUpgraded(archive);
  const at = isDueSooner ? repeatAt(backups, now) : nextAutomatedAt(archive, backups);
  if (at > now) return { kind: "at", at };
  // A backup that is due waits until the service runs and no operation is under way.
  if (service.status.state !== "Running" || service.status.operationId !== null) return { kind: "none" };
  if (archive.status.lastAutomatedAt === null) return { kind: "now", trigger: "first" };
  if (!isCovered(archive, backups)) return { kind: "now", trigger: "gap" };
  return { kind: "now", trigger: isUpgraded(archive) ? "upgrade" : "schedule" };
}

/** Did another image come under the data since the last automated backup? */
function isUpgraded({ status }: ArchiveObject): boolean {
  const { imageChangedAt, lastAutomatedAt } = status;
  return imageChangedAt !== undefined && lastAutomatedAt !== null && imageChangedAt > lastAutomatedAt;
}

/** Does the log of now go on from a base, where there is one? Before the first base there is none to go on from. */
function isCovered(archive: ArchiveObject, backups: readonly BackupObject[]): boolean {
  const range = currentRange(archive);
  if (range === undefined || archive.status.lastAutomatedAt === null) return true;
  const completed = backups.filter(({ status }) => status.state === "completed");
  return completed.some(
    (backup) =>
      (backup.status.startedAt ?? 0) >= range.fromTime || logAfter(backup, archive.status.log)?.at(-1) === range,
  );
}

/** Pure: when the next automated backup begins by itself. */
export function nextAutomatedAt(archive: ArchiveObject, backups: readonly BackupObject[]): number {
  const { lastAutomatedAt, firstDueAt: first } = archive.status;
  if (lastAutomatedAt === null) return first;
  const daily = nextDaily(settingsOf(archive.metadata.id, archive), lastAutomatedAt);
  return Math.min(daily, repeatAt(backups, daily));
}

/** When one that failed is repeated; `otherwise` when the last one did not fail. */
function repeatAt(backups: readonly BackupObject[], otherwise: number): number {
  const last = backups.findLast(({ spec }) => spec.backupType === "automated");
  const failedAt = last?.status.state === "failed" ? last.status.finishedAt : null;
  return failedAt === null ? otherwise : failedAt + retryAfterMs;
}

function dueFinal(
  { spec }: ManagedServiceObject,
  automated: readonly BackupObject[],
  now: number,
  isOver: boolean,
): Due {
  if (spec.finalBackup !== "wanted") return { kind: "none" };
  const last = automated.findLast((backup) => backup.spec.trigger === "final");
  if (last === undefined) return { kind: "now", trigger: "final" };
  if (last.status.state !== "failed" || last.status.error?.code === "not_supported" || isOver) return { kind: "none" };
  const at = (last.status.finishedAt ?? now) + finalRetryMs;
  return at > now ? { kind: "at", at } : { kind: "now", trigger: "final" };
}
