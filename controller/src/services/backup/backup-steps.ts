import { timestampMs } from "@bufbuild/protobuf/wkt";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { next } from "@holdfast/common/machine.ts";
import type { BackupObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { completed, failed, type OperationObject, progressed } from "#operation/operation.ts";
import { afterFailure } from "#kernel/runtime/recorded-retry.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { type BackupEffect, type BackupEvent, backupLifecycle } from "./backup-lifecycle.ts";
import type { CheckState } from "./background-checks.ts";
import { type BackupStep, furtherAttemptsMax } from "./backup-plan.ts";
import type { BackupObject, BackupStatus } from "./backup.ts";
import { failureWords } from "@holdfast/common/backup/failure-words.ts";

/** A backup after a step, with what else that writes. */
export interface Advanced {
  readonly backup: BackupObject;
  readonly operation: OperationObject | undefined;
  readonly events: readonly NewEvent[];
}

const longestCheckPauseMs = 60_000;

/** Pure: what a step makes of a backup and its operation; the same objects when it changes nothing. */
export function advanceBackup(
  backup: BackupObject,
  operation: OperationObject | undefined,
  step: BackupStep,
  now: number,
): Advanced {
  const { status } = backup;
  const fresh = { mark: "", progressedAt: now, progressPct: 0 };
  switch (step.kind) {
    case "begin": {
      const { machineId, term } = step;
      const began = { attempt: status.attempt + 1, machineId, term, startedAt: status.startedAt ?? now };
      return moved(step.isWhole ? whole(backup) : backup, operation, "begun", { ...fresh, ...began }, now);
    }
    case "follow":
      return followed(backup, operation, step.told, now);
    case "requeue":
      return moved(
        backup,
        operation,
        "sourceLost",
        { ...fresh, machineId: null, retry: afterFailure(status.retry, now) },
        now,
      );
    case "checkLater": {
      const retry = afterFailure(status.retry, now, { maxMs: longestCheckPauseMs });
      return { backup: withStatus(backup, { retry }, now), operation, events: [] };
    }
    case "stored":
      return moved(withoutRetry(backup), operation, "stored", storedFacts(step.told, status, now), now);
    case "complete":
      return moved(withoutRetry(backup), operation, "verified", { progressPct: 100, finishedAt: now }, now);
    case "fail": {
      const error = { code: step.code, message: step.message };
      return moved(backup, operation, "failed", { error, finishedAt: now }, now);
    }
    case "wait":
      return { backup, operation: withStep(operation, step.step, status.progressPct, now), events: [] };
    default:
      return { backup, operation, events: [] };
  }
}

/** Pure: what a verification that a user requested makes of its backup and operation. A store that fails is read again after a pause. */
export function advanceVerification(
  backup: BackupObject,
  operation: OperationObject | undefined,
  check: Exclude<CheckState, { kind: "running" }>,
  now: number,
): Advanced {
  const { spec, status } = withoutRetry(backup);
  const over = { ...backup, spec: { ...spec, verification: null } };
  const end = (error?: { readonly code: string; readonly message: string }) => {
    if (operation === undefined || operation.status.finishedAt !== null) return operation;
    return error === undefined ? completed(operation, now) : failed(operation, error, now);
  };
  if (check.kind === "passed")
    return { backup: { ...over, status: { ...status, verifiedAt: now } }, operation: end(), events: [] };
  const isDamage = check.error.name === "BackupDamaged";
  const { retry } = backup.status;
  if (!isDamage && (retry?.failures ?? 0) < furtherAttemptsMax) {
    const later = { ...status, retry: afterFailure(retry, now) };
    return { backup: { ...backup, status: later }, operation, events: [] };
  }
  const code = isDamage ? "damaged" : "store_failed";
  const message = failureWords(code, check.error.message);
  return { backup: { ...over, status: { ...status, damage: message } }, operation: end({ code, message }), events: [] };
}

/** Failures of its attempts are no failures of its checks. */
function withoutRetry(backup: BackupObject): BackupObject {
  const { retry: _, ...status } = backup.status;
  return { ...backup, status };
}

/** The same as one that goes on from nothing. */
function whole(backup: BackupObject): BackupObject {
  const { baseId: _, ...spec } = backup.spec;
  const { kind = "full" } = engineOf(spec.databaseType)?.backups ?? {};
  return spec.kind === "incremental" ? { ...backup, spec: { ...spec, kind } } : backup;
}

function moved(
  backup: BackupObject,
  operation: OperationObject | undefined,
  event: BackupEvent,
  change: Partial<BackupStatus>,
  now: number,
): Advanced {
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

function followed(
  backup: BackupObject,
  operation: OperationObject | undefined,
  told: BackupObservation,
  now: number,
): Advanced {
  const { status } = backup;
  const mark = `${told.sourceBytes} ${told.storedBytes} ${told.storedObjects}`;
  const total = Number(told.sourceTotalBytes);
  // The last percents are the check's.
  const progressPct = total === 0 ? 0 : Math.min(95, Math.floor((95 * Number(told.sourceBytes)) / total));
  if (mark === status.mark) return { backup, operation, events: [] };
  const change = { mark, progressedAt: now, progressPct, sourceBytes: Math.max(total, Number(told.sourceBytes)) };
  const after = withStatus(backup, change, now);
  return { backup: after, operation: withStep(operation, "TakeBackup", progressPct, now, mark), events: [] };
}

function storedFacts(told: BackupObservation, status: BackupStatus, now: number): Partial<BackupStatus> {
  return {
    progressPct: 95,
    progressedAt: now,
    sourceBytes: Number(told.sourceBytes),
    sizeBytes: Number(told.storedBytes),
    manifestSha256: told.manifestSha256,
    ...(told.hasPageMap && { hasPageMap: true }),
    ...momentsOf(told, status, now),
  };
}

function momentsOf(
  { dataTime, consistentTime, consistentPosition }: BackupObservation,
  { startedAt }: BackupStatus,
  now: number,
): Pick<BackupStatus, "restoresTo" | "consistentAt"> {
  const restoresTo = dataTime === undefined ? now : timestampMs(dataTime);
  if (consistentPosition === "") return { restoresTo };
  if (consistentTime !== undefined) return { restoresTo, consistentAt: timestampMs(consistentTime) };
  // An older agent says when it had read all: only what was acknowledged before it began is certainly there.
  return { restoresTo: startedAt ?? restoresTo, consistentAt: restoresTo };
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
