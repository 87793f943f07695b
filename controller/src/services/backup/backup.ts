import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { RecordedRetry } from "#kernel/runtime/recorded-retry.ts";
import { newMetadata, type Resource } from "#kernel/store/resource.ts";
import type { BackupState } from "./backup-lifecycle.ts";

export type BackupObject = Resource<BackupSpec, BackupStatus>;
/** Of one service; they are kept until they are deleted. */
export const manualBackupQuota: Quota<BackupObject> = {
  name: "manualBackups",
  words: "manual backups",
  limit: 50,
  ownerOf: serviceOfBackup,
  amountOf: (backup) => (isShown(backup) && backup.spec.backupType === "manual" ? 1 : 0),
};

export const backupKind = defineKind<BackupObject>("backup", {
  indexes: [serviceOfBackup, openBackup],
  quotas: [manualBackupQuota],
});

/** Index: the backups of one service. */
export function serviceOfBackup({ spec }: BackupObject): string {
  return spec.serviceId;
}

/** Index: under "open", the backups that have not ended. */
export function openBackup(backup: BackupObject): "open" | undefined {
  return hasEnded(backup) ? undefined : "open";
}

export type BackupType = "automated" | "manual";
export type BackupKind = "full" | "incremental" | "snapshot";
export type BackupTrigger = "schedule" | "request" | "first" | "final" | "gap" | "upgrade";

/** One backup of one service. It outlives the service. Times are milliseconds since 1970. */
export interface BackupSpec {
  readonly serviceId: string;
  readonly databaseType: string;
  readonly version: string;
  readonly backupType: BackupType;
  readonly kind: BackupKind;
  readonly trigger: BackupTrigger;
  /** The backup that it is an increment since; absent for one that needs nothing. */
  readonly baseId?: string;
  /** The operation that takes it. */
  readonly operationId: string;
  /** Version of the service's key that its data key is wrapped under. */
  readonly keyVersion: number;
  /** Its data key, wrapped (backup-key.ts). */
  readonly wrappedKey: string;
  /** Somebody asked for its end. */
  readonly cancelRequested: boolean;
  /** The operation that reads all of it, while that is not over. */
  readonly verification: string | null;
}

export interface BackupStatus {
  readonly state: BackupState;
  /** How often it was begun. */
  readonly attempt: number;
  /** Attempts, or checks of what was stored, that failed in a row; absent before the first one. */
  readonly retry?: RecordedRetry;
  /** The machine that takes it, since it was begun. */
  readonly machineId: string | null;
  readonly progressPct: number;
  readonly sourceBytes: number | null;
  /** Stored. */
  readonly sizeBytes: number | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /** What progress is measured by, and when that was last new. */
  readonly mark: string;
  readonly progressedAt: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** SHA-256 of its manifest as it is stored, hex; empty until it is. */
  readonly manifestSha256: string;
  /** Term of the service when it was begun; absent for those from before it was noted. */
  readonly term?: number;
  /** An increment can be taken since it. */
  readonly hasPageMap?: boolean;
  /** No later than the data that it brings back: what was acknowledged before is in them. */
  readonly restoresTo: number | null;
  /** The first moment that it brings back with the log behind it; absent for snapshots, and in what an older version wrote. */
  readonly consistentAt?: number;
  readonly verifiedAt: number | null;
  /** Why the last verification by request failed; absent when it did not. */
  readonly damage?: string;
  /** It has ended, and nothing is stored of it but what belongs to it. */
  readonly isClear?: boolean;
}

export type NewBackup = Pick<
  BackupSpec,
  | "serviceId"
  | "databaseType"
  | "version"
  | "backupType"
  | "kind"
  | "baseId"
  | "trigger"
  | "operationId"
  | "keyVersion"
  | "wrappedKey"
>;

/** A backup that waits for its turn. */
export function newBackup(id: string, organizationId: string, asked: NewBackup, now: number): BackupObject {
  return {
    metadata: newMetadata(id, now, { organizationId }),
    spec: { ...asked, cancelRequested: false, verification: null },
    status: {
      state: "pending",
      attempt: 0,
      machineId: null,
      progressPct: 0,
      sourceBytes: null,
      sizeBytes: null,
      startedAt: null,
      finishedAt: null,
      mark: "",
      progressedAt: now,
      error: null,
      manifestSha256: "",
      restoresTo: null,
      verifiedAt: null,
    },
  };
}

/** The first moment that a completed one brings back with the log behind it. */
export function logReachesFrom({ status }: BackupObject): number | null {
  return status.consistentAt ?? status.restoresTo;
}

/** Has it come to its end, well or not? */
export function hasEnded({ status }: BackupObject): boolean {
  return status.state === "completed" || status.state === "failed";
}

/** Is nothing stored of it, by any attempt, but what belongs to it? */
export function isClear({ status }: BackupObject): boolean {
  // Nothing but the one attempt of a completed one ever stored anything.
  return status.isClear === true || (status.state === "completed" && status.attempt === 1);
}

/** Is it there for users? One that is to be deleted is gone for them at once. */
export function isShown({ metadata }: BackupObject): boolean {
  return metadata.deletionRequestedAt === undefined;
}
