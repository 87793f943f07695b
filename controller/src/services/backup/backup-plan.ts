import type { BackupObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { pauseLeftMs } from "#kernel/runtime/recorded-retry.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { CheckState } from "./background-checks.ts";
import type { BackupObject } from "./backup.ts";
import { failureWords } from "@holdfast/common/backup/failure-words.ts";

/** What the world is like for one backup that has not ended, read fresh at each reconcile. */
export interface ObservedBackup {
  /** Undefined when it is gone. */
  readonly service: ManagedServiceObject | undefined;
  /** Primary of the service. */
  readonly machineId: string | undefined;
  /** Its agent is there, and its engine up. */
  readonly isUp: boolean;
  /** The engine has the settings of now: where the service is closed, those admit nobody. */
  readonly isClosed: boolean;
  /** No other backup of the service comes before it. */
  readonly isNext: boolean;
  /** Its host takes fewer backups than it may. */
  readonly hasRoom: boolean;
  /** The log that goes on from it is about to be followed. */
  readonly isLogAwaited: boolean;
  /** What it is an increment since is still there, whole, and of the version of now. */
  readonly hasBase: boolean;
  /** What the machine told of this very attempt. */
  readonly told: BackupObservation | undefined;
  /** Why the machine does not even begin with it. */
  readonly refusal: { readonly code: string; readonly message: string } | undefined;
  /** Of what was stored. */
  readonly check: CheckState | undefined;
}

export type BackupStep =
  | {
      readonly kind: "wait";
      readonly step: "WaitForTurn" | "WaitForService" | "WaitForHost" | "WaitForRetry" | "FollowLog" | "VerifyBackup";
    }
  /** Another attempt is written down before its machine hears of it. */
  | { readonly kind: "begin"; readonly machineId: string; readonly term: number; readonly isWhole: boolean }
  /** The machine has not told of the attempt yet. */
  | { readonly kind: "start" }
  | { readonly kind: "follow"; readonly told: BackupObservation }
  /** The attempt is over and another one follows after a pause. */
  | { readonly kind: "requeue"; readonly reason: string }
  | { readonly kind: "stored"; readonly told: BackupObservation }
  | { readonly kind: "check" }
  /** The store did not let it be checked: another check follows after a pause. */
  | { readonly kind: "checkLater"; readonly reason: string }
  | { readonly kind: "complete" }
  /** `reason`: words of what failed, for the log. */
  | { readonly kind: "fail"; readonly code: string; readonly message: string; readonly reason?: string };

const minuteMs = 60_000;
/** Without progress for so long it is given up (spec 1, Limits). */
export const silentForMs = 30 * minuteMs;
/** However it moves, it is given up at this speed. */
const slowestBytesPerMs = 2_000;
/** What waits is given up too: the schedule makes another one. */
const waitsForMs = 24 * 60 * minuteMs;
/** After the first one. */
export const furtherAttemptsMax = 3;
/** Of failures that another attempt may not meet. */
const repeatedCodes: ReadonlySet<string> = new Set(["interrupted", "source_failed", "store_failed", "failed"]);

/** Pure: what to do next. */
export function planBackup(backup: BackupObject, observed: ObservedBackup, now: number): BackupStep {
  const { spec, status } = backup;
  if (spec.cancelRequested) return fail("cancelled", "The backup was cancelled.");
  if (status.state === "verifying") return planCheck(backup, observed.check, now);
  const { service } = observed;
  if (service === undefined) return fail("service_deleted", "The service was deleted.");
  return status.state === "running" ? planRunning(backup, observed, now) : planPending(backup, service, observed, now);
}

function planPending(
  { metadata, spec, status }: BackupObject,
  service: ManagedServiceObject,
  { machineId, isUp, isClosed, isNext, hasRoom, isLogAwaited, hasBase }: ObservedBackup,
  now: number,
): BackupStep {
  if (service.metadata.deletionRequestedAt !== undefined && spec.trigger !== "final")
    return fail("service_deleted", "The service is being deleted.");
  if (service.spec.power === "off") return fail("service_stopped", "The service was stopped.");
  if (now - metadata.createdAt > waitsForMs) return fail("not_started", "It could not begin for a day.");
  if (!isNext) return { kind: "wait", step: "WaitForTurn" };
  if (pauseLeftMs(status.retry, now) > 0) return { kind: "wait", step: "WaitForRetry" };
  if (!isUp || machineId === undefined || (service.spec.closed === true && !isClosed))
    return { kind: "wait", step: "WaitForService" };
  if (!hasRoom) return { kind: "wait", step: "WaitForHost" };
  if (isLogAwaited) return { kind: "wait", step: "FollowLog" };
  // The second attempt of an increment is a whole backup: its base may be why the first failed.
  const isWhole = spec.kind !== "incremental" || status.attempt > 0 || !hasBase;
  return { kind: "begin", machineId, term: service.status.term, isWhole };
}

function planRunning(backup: BackupObject, observed: ObservedBackup, now: number): BackupStep {
  const { machineId, isUp, told, service, refusal } = observed;
  const { status } = backup;
  const isIncrement = backup.spec.kind === "incremental";
  if (machineId !== status.machineId)
    return requeue(backup, "interrupted", "The service's data moved to another machine.");
  if (service?.spec.power === "off") return fail("service_stopped", "The service was stopped.");
  if (told?.state === "stored") return { kind: "stored", told };
  if (told?.state === "cancelled") return requeue(backup, "interrupted", "The machine gave the backup up.");
  if (told?.state === "failed") {
    const code = told.errorCode === "" ? "failed" : told.errorCode;
    if (repeatedCodes.has(code) || isIncrement) return requeue(backup, code, told.error);
    return { ...fail(code, failureWords(code, told.error)), reason: told.error };
  }
  if (now - status.progressedAt > silentForMs)
    return fail("timed_out", `No byte was stored for ${silentForMs / minuteMs} minutes.`);
  const longestMs = silentForMs + (status.sourceBytes ?? 0) / slowestBytesPerMs;
  if (now - (status.startedAt ?? now) > Math.max(longestMs, 4 * silentForMs))
    return fail("timed_out", "It took too long for its size.");
  if (told !== undefined) return { kind: "follow", told };
  // An agent from before increments takes a full one.
  if (refusal !== undefined)
    return isIncrement ? requeue(backup, refusal.code, refusal.message) : fail(refusal.code, refusal.message);
  return isUp ? { kind: "start" } : { kind: "wait", step: "WaitForService" };
}

function planCheck({ status }: BackupObject, check: CheckState | undefined, now: number): BackupStep {
  if (check === undefined)
    return pauseLeftMs(status.retry, now) > 0 ? { kind: "wait", step: "WaitForRetry" } : { kind: "check" };
  if (check.kind === "passed") return { kind: "complete" };
  if (check.kind === "failed") {
    const reason = check.error.message;
    if (check.error.name === "BackupDamaged") return fail("damaged", reason);
    // The store does not answer: what is in it is no worse for that.
    if (now - status.progressedAt <= silentForMs) return { kind: "checkLater", reason };
    return { ...fail("store_failed", failureWords("store_failed", reason)), reason };
  }
  return { kind: "wait", step: "VerifyBackup" };
}

function requeue({ status }: BackupObject, code: string, reason: string): BackupStep {
  if (status.attempt > furtherAttemptsMax)
    return { ...fail(code, `Each of ${status.attempt} attempts ended: ${failureWords(code, reason)}`), reason };
  return { kind: "requeue", reason };
}

function fail(code: string, message: string): Extract<BackupStep, { kind: "fail" }> {
  return { kind: "fail", code, message };
}
