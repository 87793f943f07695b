import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { Quota } from "#kernel/store/quota.ts";
import { defineKind } from "#kernel/store/kind.ts";
import type { RecordedRetry } from "#kernel/runtime/recorded-retry.ts";
import { newMetadata, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { BackupState } from "./backup-lifecycle.ts";
import type { Collection } from "#kernel/store/collection.ts";

export type BackupObject = Resource<BackupSpec, BackupStatus>;
/** Quota of the manual backups of one service. They are retained until a user deletes them. */
export const manualBackupQuota: Quota<BackupObject> = {
  name: "manualBackups",
  label: "manual backups",
  limit: 50,
  ownerOf: serviceOfBackup,
  amountOf: (backup) => (isVisible(backup) && backup.spec.backupType === "manual" ? 1 : 0),
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
function openBackup(backup: BackupObject): "open" | undefined {
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
  /** The base of an increment; absent for a full backup. */
  readonly baseId?: string;
  /** The operation that takes the backup. */
  readonly operationId: string;
  /** Version of the service's key that wraps the data key. */
  readonly keyVersion: number;
  /** The wrapped data key (`backup-key.ts`). */
  readonly wrappedKey: string;
  /** True if a user requested the cancellation of the backup. */
  readonly cancelRequested: boolean;
  /** Operation of a verification in progress; null if there is none. */
  readonly verification: string | null;
}

export interface BackupStatus {
  readonly state: BackupState;
  /** Number of attempts. */
  readonly attempt: number;
  /** Consecutive failures of attempts, or of checks; absent before the first. */
  readonly retry?: RecordedRetry;
  /** Id of the machine that takes the backup; null before the first attempt. */
  readonly machineId: string | null;
  readonly progressPct: number;
  readonly sourceBytes: number | null;
  /** Bytes in the object store. */
  readonly sizeBytes: number | null;
  readonly startedAt: number | null;
  readonly finishedAt: number | null;
  /**
   * Progress marker (`SOURCE_BYTES STORED_BYTES STORED_OBJECTS`, such as `52428800 7340032 4`), and the time of its
   * last change.
   */
  readonly mark: string;
  readonly progressedAt: number;
  readonly error: { readonly code: string; readonly message: string } | null;
  /** SHA-256 (hex) of the stored manifest; empty until it is stored. */
  readonly manifestSha256: string;
  /** Term of the service at the last attempt; absent before the first. */
  readonly term?: number;
  /** True if the backup has a page map, so that an increment can be based on it. */
  readonly hasPageMap?: boolean;
  /** Time of the restored data: the backup contains all commits that were acknowledged before it. */
  readonly restoresTo: number | null;
  /** First time that can be restored with the log after the backup; absent for snapshots. */
  readonly consistentAt?: number;
  readonly verifiedAt: number | null;
  /** Reason why the last verification by request failed; absent if it passed. */
  readonly damage?: string;
  /** True if a reader or verification found a part lost or changed. The backup cannot be restored. */
  readonly isDamaged?: true;
  /** True if the backup has ended and no objects of failed attempts remain. */
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

/** A pending backup. */
export function newBackupObject(id: string, organizationId: string, request: NewBackup, now: number): BackupObject {
  return {
    metadata: newMetadata(id, now, { organizationId }),
    spec: { ...request, cancelRequested: false, verification: null },
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

/**
 * True if no log can be replayed on the backup although its engine has one: a snapshot without a position in the log,
 * such as one of an older release.
 */
export function lacksLogPosition({ spec, status }: BackupObject): boolean {
  const hasLog = engineOf(spec.databaseType)?.backups?.restorePoints === "any_second";
  return hasLog && spec.kind === "snapshot" && status.consistentAt === undefined;
}

/** First time that a completed backup and the log after it can restore, in milliseconds since 1970. */
export function firstRecoveryPoint({ status }: BackupObject): number | null {
  return status.consistentAt ?? status.restoresTo;
}

/** True if the backup is completed or failed. */
export function hasEnded({ status }: BackupObject): boolean {
  return status.state === "completed" || status.state === "failed";
}

/** True if no objects of failed attempts remain. */
export function isClear({ status }: BackupObject): boolean {
  // A completed backup with one attempt has no failed one.
  return status.isClear === true || (status.state === "completed" && status.attempt === 1);
}

/**
 * True if users see the backup. It is hidden from the moment its deletion is requested, before its objects are deleted.
 */
export function isVisible({ metadata }: BackupObject): boolean {
  return metadata.deletionRequestedAt === undefined;
}

/** Lookups of backups without a scan of all backups. */
export interface BackupIndex {
  /** Backups of the service, oldest first. */
  of(serviceId: string): Stored<BackupObject>[];
  /** Backups of all services that have not ended. */
  open(): Stored<BackupObject>[];
  get(backupId: string): Stored<BackupObject> | undefined;
}

export function createBackupIndex(backups: Pick<Collection<BackupObject>, "by" | "get">): BackupIndex {
  return {
    of: (serviceId) => backups.by(serviceOfBackup, serviceId),
    open: () => backups.by(openBackup, "open"),
    get: backups.get,
  };
}
