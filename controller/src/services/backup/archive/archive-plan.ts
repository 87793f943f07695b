import type { PlanSize } from "@holdfast/common/engine-catalog/engine-row.ts";
import { hash } from "#kernel/runtime/ownership.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import { type ArchiveObject, nextDaily, settingsOf } from "./archive.ts";
import { type BackupObject, type BackupSpec, hasEnded, lacksLogPosition } from "../backup.ts";
import { withoutDamaged } from "../backup-chain.ts";
import { currentRange } from "../log/log-archive.ts";
import { withoutHoles } from "../log/log-holes.ts";
import { needsLowerBase } from "../log/lowered-settings.ts";
import { logAfter } from "../restore/restorable.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;
/** Maximum age of a new service. An older service without an archive predates backups. */
const newServiceMaxAgeMs = hourMs;
/** Delay until a failed backup is retried, whether or not its daily time has come. */
const retryDelayMs = hourMs;
const finalRetryDelayMs = minuteMs;

/**
 * Time at which the first backup of a service is due, in milliseconds since 1970. The first backups of services that
 * predate backups are spread over a day.
 */
export function firstDueAt({ metadata }: ManagedServiceObject, afterMs: number, now: number): number {
  const isNew = now - metadata.createdAt < newServiceMaxAgeMs;
  return now + (isNew ? afterMs : hash(`first-backup/${metadata.id}`) % dayMs);
}

/** The automated backup that is due now (`now`), the time of the next one (`at`), or neither (`none`). */
export type Due =
  | { readonly kind: "now"; readonly trigger: BackupSpec["trigger"] }
  | { readonly kind: "at"; readonly at: number }
  | { readonly kind: "none" };

/** The next automated backup. `backups` are all backups of the service, oldest first. */
export function dueBackup(
  service: ManagedServiceObject,
  archive: ArchiveObject,
  backups: readonly BackupObject[],
  {
    now,
    finalBackupTimeoutMs,
    plan,
  }: { readonly now: number; readonly finalBackupTimeoutMs: number; readonly plan?: PlanSize | undefined },
): Due {
  const automated = backups.filter(({ spec }) => spec.backupType === "automated");
  if (service.metadata.deletionRequestedAt !== undefined) {
    const hasTimedOut = now - service.metadata.deletionRequestedAt > finalBackupTimeoutMs;
    return dueFinal(service, automated, now, hasTimedOut);
  }
  if (automated.some((backup) => !hasEnded(backup))) return { kind: "none" };
  const isDueNow = !isCovered(archive, backups) || isUpgraded(archive) || needsLowerBase(archive, service, plan);
  const at = isDueNow ? retryAt(archive, backups, now) : nextAutomatedAt(archive, backups);
  if (at > now) return { kind: "at", at };
  // A due backup waits until the service is Running and has no operation in progress.
  if (service.status.state !== "Running" || service.status.operationId !== null) return { kind: "none" };
  if (archive.status.lastAutomatedAt === null) return { kind: "now", trigger: "first" };
  if (!isCovered(archive, backups)) return { kind: "now", trigger: "gap" };
  return { kind: "now", trigger: isUpgraded(archive) ? "upgrade" : "schedule" };
}

/** True if the image changed since the last automated backup. */
function isUpgraded({ status }: ArchiveObject): boolean {
  const { imageChangedAt, lastAutomatedAt } = status;
  return imageChangedAt !== undefined && lastAutomatedAt !== null && imageChangedAt > lastAutomatedAt;
}

/**
 * True if the current log, after its last hole, follows an intact base backup, so that it can be replayed; without a
 * log, if the newest backup is intact. True before the first base, because there is nothing to cover yet.
 */
function isCovered(archive: ArchiveObject, backups: readonly BackupObject[]): boolean {
  if (archive.status.lastAutomatedAt === null) return true;
  const completed = backups.filter(({ status }) => status.state === "completed");
  const intact = withoutDamaged(completed);
  const log = withoutHoles(archive.status.log);
  const range = currentRange({ ...archive, status: { ...archive.status, log } });
  if (range === undefined) return intact.at(-1) === completed.at(-1);
  return intact.some(
    (backup) =>
      !lacksLogPosition(backup) &&
      ((backup.status.startedAt ?? 0) >= range.fromTime || logAfter(backup, log)?.at(-1) === range),
  );
}

/** Time at which the next automated backup begins by the schedule, in milliseconds since 1970. */
export function nextAutomatedAt(archive: ArchiveObject, backups: readonly BackupObject[]): number {
  const { lastAutomatedAt, firstDueAt: first } = archive.status;
  if (lastAutomatedAt === null) return first;
  const daily = nextDaily(settingsOf(archive.metadata.id, archive), lastAutomatedAt);
  return Math.min(daily, retryAt(archive, backups, daily));
}

/**
 * Time at which a failed backup, or one on which the archived log cannot be replayed, is retried; `otherwise` if the
 * last automated backup is neither.
 */
function retryAt(archive: ArchiveObject, backups: readonly BackupObject[], otherwise: number): number {
  const last = backups.findLast(({ spec }) => spec.backupType === "automated");
  const isRetried =
    last !== undefined &&
    (last.status.state === "failed" || (currentRange(archive) !== undefined && lacksLogPosition(last)));
  const failedAt = isRetried ? last.status.finishedAt : null;
  return failedAt === null ? otherwise : failedAt + retryDelayMs;
}

function dueFinal(
  { spec }: ManagedServiceObject,
  automated: readonly BackupObject[],
  now: number,
  hasTimedOut: boolean,
): Due {
  if (spec.finalBackup !== "wanted") return { kind: "none" };
  const last = automated.findLast((backup) => backup.spec.trigger === "final");
  if (last === undefined) return { kind: "now", trigger: "final" };
  if (last.status.state !== "failed" || last.status.error?.code === "not_supported" || hasTimedOut)
    return { kind: "none" };
  const at = (last.status.finishedAt ?? now) + finalRetryDelayMs;
  return at > now ? { kind: "at", at } : { kind: "now", trigger: "final" };
}
