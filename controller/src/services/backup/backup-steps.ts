import { timestampMs } from "@bufbuild/protobuf/wkt";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { next } from "@holdfast/common/machine.ts";
import type { BackupObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { completed, failed, type OperationObject, progressed } from "#operation/operation.ts";
import { afterFailure } from "#kernel/runtime/recorded-retry.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { type BackupEffect, type BackupEvent, backupLifecycle } from "./backup-lifecycle.ts";
import type { CheckState } from "./background-checks.ts";
import { type BackupStep, retriesMax } from "./backup-plan.ts";
import type { BackupObject, BackupStatus } from "./backup.ts";
import { failureMessage } from "@holdfast/common/backup/failure-message.ts";

/** The objects that a step writes. */
export interface AdvancedBackup {
  readonly backup: BackupObject;
  readonly operation: OperationObject | undefined;
  readonly events: readonly NewEvent[];
}

const checkPauseMaxMs = 60_000;

/** Backup, operation and events after a step; the same objects if it changes nothing. */
export function advanceBackup(
  backup: BackupObject,
  operation: OperationObject | undefined,
  step: BackupStep,
  now: number,
): AdvancedBackup {
  const { status } = backup;
  const initial = { mark: "", progressedAt: now, progressPct: 0 };
  switch (step.kind) {
    case "begin": {
      const { machineId, term } = step;
      const began = { attempt: status.attempt + 1, machineId, term, startedAt: status.startedAt ?? now };
      return transitioned(
        step.isFull ? asFullBackup(backup) : backup,
        operation,
        "begun",
        { ...initial, ...began },
        now,
      );
    }
    case "follow":
      return withProgress(backup, operation, step.report, now);
    case "requeue":
      return transitioned(
        backup,
        operation,
        "sourceLost",
        { ...initial, machineId: null, retry: afterFailure(status.retry, now) },
        now,
      );
    case "checkLater": {
      const retry = afterFailure(status.retry, now, { maxMs: checkPauseMaxMs });
      return { backup: withStatus(backup, { retry }, now), operation, events: [] };
    }
    case "stored":
      return transitioned(withoutRetry(backup), operation, "stored", storedFacts(step.report, now), now);
    case "complete":
      return transitioned(withoutRetry(backup), operation, "verified", { progressPct: 100, finishedAt: now }, now);
    case "fail": {
      const error = { code: step.code, message: step.message };
      return transitioned(backup, operation, "failed", { error, finishedAt: now }, now);
    }
    case "wait":
      return { backup, operation: withStep(operation, step.step, status.progressPct, now), events: [] };
    default:
      return { backup, operation, events: [] };
  }
}

/**
 * Backup and operation after a verification by request. If the store fails, the verification is repeated after a
 * pause.
 */
export function advanceVerification(
  backup: BackupObject,
  operation: OperationObject | undefined,
  check: Exclude<CheckState, { kind: "running" }>,
  now: number,
): AdvancedBackup {
  const { spec, status } = withoutRetry(backup);
  const { damage: _, isDamaged: __, ...intact } = status;
  const unverified = { ...backup, spec: { ...spec, verification: null } };
  const end = (error?: { readonly code: string; readonly message: string }) => {
    if (operation === undefined || operation.status.finishedAt !== null) return operation;
    return error === undefined ? completed(operation, now) : failed(operation, error, now);
  };
  if (check.kind === "passed")
    return { backup: { ...unverified, status: { ...intact, verifiedAt: now } }, operation: end(), events: [] };
  const isDamage = check.error.name === "BackupDamaged";
  const { retry } = backup.status;
  if (!isDamage && (retry?.failures ?? 0) < retriesMax) {
    const later = { ...status, retry: afterFailure(retry, now) };
    return { backup: { ...backup, status: later }, operation, events: [] };
  }
  const code = isDamage ? "damaged" : "store_failed";
  const message = failureMessage(code, check.error.message);
  return {
    backup: { ...unverified, status: { ...status, damage: message, ...(isDamage && { isDamaged: true }) } },
    operation: end({ code, message }),
    events: [],
  };
}

/** The backup without recorded retries: retries of attempts and of checks are counted separately. */
function withoutRetry(backup: BackupObject): BackupObject {
  const { retry: _, ...status } = backup.status;
  return { ...backup, status };
}

/** The backup as a full one, without a base. */
function asFullBackup(backup: BackupObject): BackupObject {
  const { baseId: _, ...spec } = backup.spec;
  const { kind = "full" } = engineOf(spec.databaseType)?.backups ?? {};
  return spec.kind === "incremental" ? { ...backup, spec: { ...spec, kind } } : backup;
}

function transitioned(
  backup: BackupObject,
  operation: OperationObject | undefined,
  event: BackupEvent,
  change: Partial<BackupStatus>,
  now: number,
): AdvancedBackup {
  const row = next(backupLifecycle, backup.status.state, event);
  if (row === undefined) return { backup, operation, events: [] };
  const [, , state, effect] = row;
  const after = withStatus(backup, { ...change, state }, now);
  const step = state === "running" ? "TakeBackup" : state === "verifying" ? "VerifyBackup" : "WaitForTurn";
  return {
    backup: after,
    operation: ended(operation, after, now) ?? withStep(operation, step, after.status.progressPct, now),
    events: eventsOf(effect, after, now),
  };
}

function withProgress(
  backup: BackupObject,
  operation: OperationObject | undefined,
  report: BackupObservation,
  now: number,
): AdvancedBackup {
  const { status } = backup;
  const mark = `${report.sourceBytes} ${report.storedBytes} ${report.storedObjects}`;
  const total = Number(report.sourceTotalBytes);
  // The check is the last 5 percent.
  const progressPct = total === 0 ? 0 : Math.min(95, Math.floor((95 * Number(report.sourceBytes)) / total));
  if (mark === status.mark) return { backup, operation, events: [] };
  const change = { mark, progressedAt: now, progressPct, sourceBytes: Math.max(total, Number(report.sourceBytes)) };
  const after = withStatus(backup, change, now);
  return { backup: after, operation: withStep(operation, "TakeBackup", progressPct, now, mark), events: [] };
}

function storedFacts(report: BackupObservation, now: number): Partial<BackupStatus> {
  return {
    progressPct: 95,
    progressedAt: now,
    sourceBytes: Number(report.sourceBytes),
    sizeBytes: Number(report.storedBytes),
    manifestSha256: report.manifestSha256,
    ...(report.hasPageMap && { hasPageMap: true }),
    ...recoveryPointsOf(report, now),
  };
}

function recoveryPointsOf(
  { dataTime, consistentTime }: BackupObservation,
  now: number,
): Pick<BackupStatus, "restoresTo" | "consistentAt"> {
  const restoresTo = dataTime === undefined ? now : timestampMs(dataTime);
  return { restoresTo, ...(consistentTime !== undefined && { consistentAt: timestampMs(consistentTime) }) };
}

function ended(operation: OperationObject | undefined, { status }: BackupObject, now: number) {
  if (operation === undefined || operation.status.finishedAt !== null) return operation;
  if (status.state === "completed") return completed(operation, now);
  if (status.state === "failed" && status.error !== null) return failed(operation, status.error, now);
  return undefined;
}

function withStep(
  operation: OperationObject | undefined,
  step: string,
  progressPct: number,
  now: number,
  mark = step,
): OperationObject | undefined {
  if (operation === undefined || operation.status.finishedAt !== null) return operation;
  const { status } = operation;
  if (status.step !== null && status.mark === mark && status.progressPct >= progressPct) return operation;
  return progressed(operation, { step, progressPct, mark, waits: true }, now);
}

function withStatus(backup: BackupObject, change: Partial<BackupStatus>, now: number): BackupObject {
  return { ...backup, metadata: { ...backup.metadata, updatedAt: now }, status: { ...backup.status, ...change } };
}

function eventsOf(effect: BackupEffect, { metadata, spec, status }: BackupObject, now: number): NewEvent[] {
  if (effect === "none") return [];
  const data = {
    service_id: spec.serviceId,
    backup_id: metadata.id,
    backup_type: spec.backupType,
    duration_seconds: (now - (status.startedAt ?? now)) / 1_000,
  };
  const of = { organizationId: metadata.organizationId, objectKind: "backup", objectId: metadata.id } as const;
  return effect === "announceCompleted"
    ? [{ ...of, type: "backup.completed", data: { ...data, size_bytes: status.sizeBytes ?? 0 } }]
    : [{ ...of, type: "backup.failed", data: { ...data, error_message: status.error?.message ?? "" } }];
}
