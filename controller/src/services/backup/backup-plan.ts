import type { BackupObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { CheckState } from "./background-checks.ts";
import type { BackupObject } from "./backup.ts";

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
      readonly step: "WaitForTurn" | "WaitForService" | "WaitForHost" | "FollowLog" | "VerifyBackup";
    }
  /** Another attempt is written down before its machine hears of it. */
  | { readonly kind: "begin"; readonly machineId: string; readonly term: number; readonly isWhole: boolean }
  /** The machine has not told of the attempt yet. */
  | { readonly kind: "start" }
  | { readonly kind: "follow"; readonly told: BackupObservation }
  /** The attempt is over and another one follows. */
  | { readonly kind: "requeue"; readonly reason: string }
  | { readonly kind: "stored"; readonly told: BackupObservation }
  | { readonly kind: "check" }
  | { readonly kind: "complete" }
  | { readonly kind: "fail"; readonly code: string; readonly message: string };

const minuteMs = 60_000;
/** Without progress for so long it is given up (spec 1, Limits). */
export const silentForMs = 30 * minuteMs;
/** However it moves, it is given up at this speed. */
const slowestBytesPerMs = 2_000;
/** What waits is given up too: the schedule makes another one. */
const waitsForMs = 24 * 60 * minuteMs;
/** After the first one. */
export const furtherAttemptsMax = 3;

/** Pure: what to do next. */
export function planBackup(backup: BackupObject, observed: ObservedBackup, now: number): BackupStep {
  const { spec, status } = backup;
  if (spec.cancelRequested) return fail("cancelled", "The backup was cancelled.");
  if (status.state === "verifying") return planCheck(status.progressedAt, observed.check, now);
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
  if (machineId !== status.machineId) return requeue(backup, "The service's data moved to another machine.");
  if (service?.spec.power === "off") return fail("service_stopped", "The service was stopped.");
  if (told?.state === "stored") return { kind: "stored", told };
  if (told?.state === "cancelled") return requeue(backup, "The machine gave the backup up.");
  if (told?.state === "failed") {
    const isRepeated = told.errorCode === "interrupted" || told.errorCode === "source_failed";
    if (isRepeated || isIncrement) return requeue(backup, told.error);
    return fail(told.errorCode === "" ? "failed" : told.errorCode, told.error);
  }
  if (now - status.progressedAt > silentForMs)
    return fail("timed_out", `No byte was stored for ${silentForMs / minuteMs} minutes.`);
  const longestMs = silentForMs + (status.sourceBytes ?? 0) / slowestBytesPerMs;
  if (now - (status.startedAt ?? now) > Math.max(longestMs, 4 * silentForMs))
    return fail("timed_out", "It took too long for its size.");
  if (told !== undefined) return { kind: "follow", told };
  // An agent from before increments takes a full one.
  if (refusal !== undefined)
    return isIncrement ? requeue(backup, refusal.message) : fail(refusal.code, refusal.message);
  return isUp ? { kind: "start" } : { kind: "wait", step: "WaitForService" };
}

function planCheck(since: number, check: CheckState | undefined, now: number): BackupStep {
  if (check === undefined) return { kind: "check" };
  if (check.kind === "passed") return { kind: "complete" };
  if (check.kind === "failed") {
    if (check.error.name === "BackupDamaged") return fail("damaged", check.error.message);
    // The store does not answer: what is in it is no worse for that.
    return now - since > silentForMs ? fail("store_failed", check.error.message) : { kind: "check" };
  }
  return { kind: "wait", step: "VerifyBackup" };
}

function requeue({ status }: BackupObject, reason: string): BackupStep {
  if (status.attempt > furtherAttemptsMax)
    return fail("interrupted", `Each of ${status.attempt} attempts ended: ${reason}`);
  return { kind: "requeue", reason };
}

function fail(code: string, message: string): BackupStep {
  return { kind: "fail", code, message };
}
