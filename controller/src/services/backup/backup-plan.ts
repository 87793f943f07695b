import type { BackupObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { remainingPauseMs } from "#kernel/runtime/recorded-retry.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { CheckState } from "./background-checks.ts";
import type { BackupObject } from "./backup.ts";
import { failureMessage } from "@holdfast/common/backup/failure-message.ts";

/** Observed state of a backup in progress, read at each reconcile. */
export interface ObservedBackup {
  /** Undefined if it was deleted. */
  readonly service: ManagedServiceObject | undefined;
  /** Machine of the service's primary. */
  readonly machineId: string | undefined;
  /** True if the machine's agent is connected and its engine runs. */
  readonly isUp: boolean;
  /** True if the engine has applied the current settings. The settings of a closed service admit no clients. */
  readonly hasCurrentSettings: boolean;
  /** True if no other backup of the service must run before this one. */
  readonly isNext: boolean;
  /** True if the machine's host runs fewer backups than its limit. */
  readonly hasCapacity: boolean;
  /** True if the archive of the log that follows the backup is about to start. */
  readonly isLogAwaited: boolean;
  /** True if the base of an increment exists, is complete and has the service's version. */
  readonly hasBase: boolean;
  /** The machine's report on the current attempt. */
  readonly report: BackupObservation | undefined;
  /** Reason why the machine refused to start the attempt. */
  readonly refusal: { readonly code: string; readonly message: string } | undefined;
  /** State of the check of the stored backup. */
  readonly check: CheckState | undefined;
}

export type BackupStep =
  | {
      readonly kind: "wait";
      readonly step: "WaitForTurn" | "WaitForService" | "WaitForHost" | "WaitForRetry" | "FollowLog" | "VerifyBackup";
    }
  /** Record a new attempt, before the machine gets the task. */
  | { readonly kind: "begin"; readonly machineId: string; readonly term: number; readonly isFull: boolean }
  /** Send the task: the machine has not reported the attempt yet. */
  | { readonly kind: "start" }
  | { readonly kind: "follow"; readonly report: BackupObservation }
  /** The attempt failed; another one follows after a pause. */
  | { readonly kind: "requeue"; readonly reason: string }
  | { readonly kind: "stored"; readonly report: BackupObservation }
  | { readonly kind: "check" }
  /** The store did not allow a check; another check follows after a pause. */
  | { readonly kind: "checkLater"; readonly reason: string }
  | { readonly kind: "complete" }
  /** `reason`: text of the underlying failure, for the log. */
  | { readonly kind: "fail"; readonly code: string; readonly message: string; readonly reason?: string };

const minuteMs = 60_000;
/** A backup without progress for this long fails. */
export const stalledAfterMs = 30 * minuteMs;
/** Minimum speed. A slower backup fails although it progresses. */
const minBytesPerMs = 2_000;
/** A backup that stays pending for this long fails; the schedule creates another one. */
const pendingMaxMs = 24 * 60 * minuteMs;
/** Maximum number of attempts after the first. */
export const retriesMax = 3;
/** Failures that another attempt may avoid. */
const retryableCodes: ReadonlySet<string> = new Set([
  "interrupted",
  "source_failed",
  "source_refused",
  "store_failed",
  "failed",
]);

/** The next step of a backup. */
export function planBackup(backup: BackupObject, observed: ObservedBackup, now: number): BackupStep {
  const { spec, status } = backup;
  if (spec.cancelRequested) return fail("cancelled", "The backup was canceled.");
  if (status.state === "verifying") return planCheck(backup, observed.check, now);
  const { service } = observed;
  if (service === undefined) return fail("service_deleted", "The service was deleted.");
  return status.state === "running" ? planRunning(backup, observed, now) : planPending(backup, service, observed, now);
}

function planPending(
  { metadata, spec, status }: BackupObject,
  service: ManagedServiceObject,
  { machineId, isUp, hasCurrentSettings, isNext, hasCapacity, isLogAwaited, hasBase }: ObservedBackup,
  now: number,
): BackupStep {
  if (service.metadata.deletionRequestedAt !== undefined && spec.trigger !== "final")
    return fail("service_deleted", "The service is being deleted.");
  if (service.spec.power === "off") return fail("service_stopped", "The service was stopped.");
  if (now - metadata.createdAt > pendingMaxMs) return fail("not_started", "The backup could not start within a day.");
  if (!isNext) return { kind: "wait", step: "WaitForTurn" };
  if (remainingPauseMs(status.retry, now) > 0) return { kind: "wait", step: "WaitForRetry" };
  if (!isUp || machineId === undefined || (service.spec.closed === true && !hasCurrentSettings))
    return { kind: "wait", step: "WaitForService" };
  if (!hasCapacity) return { kind: "wait", step: "WaitForHost" };
  if (isLogAwaited) return { kind: "wait", step: "FollowLog" };
  // The second attempt of an increment is a full backup: the base may be why the first one failed.
  const isFull = spec.kind !== "incremental" || status.attempt > 0 || !hasBase;
  return { kind: "begin", machineId, term: service.status.term, isFull };
}

function planRunning(backup: BackupObject, observed: ObservedBackup, now: number): BackupStep {
  const { machineId, isUp, report, service, refusal } = observed;
  const { status } = backup;
  const isIncrement = backup.spec.kind === "incremental";
  if (machineId !== status.machineId)
    return requeue(backup, "interrupted", "The service's primary moved to another machine.");
  if (service?.spec.power === "off") return fail("service_stopped", "The service was stopped.");
  if (report?.state === "stored") return { kind: "stored", report };
  if (report?.state === "cancelled") return requeue(backup, "interrupted", "The machine canceled the backup.");
  if (report?.state === "failed") {
    const code = report.errorCode === "" ? "failed" : report.errorCode;
    if (retryableCodes.has(code) || isIncrement) return requeue(backup, code, report.error);
    return { ...fail(code, failureMessage(code, report.error)), reason: report.error };
  }
  if (now - status.progressedAt > stalledAfterMs)
    return fail("timed_out", `No byte was stored for ${stalledAfterMs / minuteMs} minutes.`);
  const longestMs = stalledAfterMs + (status.sourceBytes ?? 0) / minBytesPerMs;
  if (now - (status.startedAt ?? now) > Math.max(longestMs, 4 * stalledAfterMs))
    return fail("timed_out", "The backup was slower than 2 MB per second.");
  if (report !== undefined) return { kind: "follow", report };
  // An increment that the machine refuses is repeated as a full backup.
  if (refusal !== undefined)
    return isIncrement ? requeue(backup, refusal.code, refusal.message) : fail(refusal.code, refusal.message);
  return isUp ? { kind: "start" } : { kind: "wait", step: "WaitForService" };
}

function planCheck({ status }: BackupObject, check: CheckState | undefined, now: number): BackupStep {
  if (check === undefined)
    return remainingPauseMs(status.retry, now) > 0 ? { kind: "wait", step: "WaitForRetry" } : { kind: "check" };
  if (check.kind === "passed") return { kind: "complete" };
  if (check.kind === "failed") {
    const reason = check.error.message;
    if (check.error.name === "BackupDamaged") return fail("damaged", reason);
    // An object store that does not respond proves nothing about the backup.
    if (now - status.progressedAt <= stalledAfterMs) return { kind: "checkLater", reason };
    return { ...fail("store_failed", failureMessage("store_failed", reason)), reason };
  }
  return { kind: "wait", step: "VerifyBackup" };
}

function requeue({ status }: BackupObject, code: string, reason: string): BackupStep {
  if (status.attempt > retriesMax)
    return { ...fail(code, `All ${status.attempt} attempts failed: ${failureMessage(code, reason)}`), reason };
  return { kind: "requeue", reason };
}

function fail(code: string, message: string): Extract<BackupStep, { kind: "fail" }> {
  return { kind: "fail", code, message };
}
