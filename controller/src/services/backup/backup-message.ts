import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Backup,
  BackupKind,
  BackupSchema,
  BackupStatus,
  BackupTrigger,
  BackupType,
} from "@holdfast/proto/holdfast/v1/backup_pb.ts";
import type { BackupState } from "./backup-lifecycle.ts";
import type { BackupObject, BackupSpec } from "./backup.ts";
import { deletedAtOf } from "./archive/backup-retention.ts";
import type { BackupSettings } from "./archive/archive.ts";

// biome-ignore format: a table, aligned so that it reads as one
const types: Record<BackupSpec["backupType"], BackupType> = {
  automated: BackupType.AUTOMATED,
  manual:    BackupType.MANUAL,
};

// biome-ignore format: a table, aligned so that it reads as one
const statuses: Record<BackupState, BackupStatus> = {
  pending:   BackupStatus.PENDING,
  running:   BackupStatus.RUNNING,
  verifying: BackupStatus.VERIFYING,
  completed: BackupStatus.COMPLETED,
  failed:    BackupStatus.FAILED,
};

// biome-ignore format: a table, aligned so that it reads as one
const kinds: Record<BackupSpec["kind"], BackupKind> = {
  full:        BackupKind.FULL,
  incremental: BackupKind.INCREMENTAL,
  snapshot:    BackupKind.SNAPSHOT,
};

// biome-ignore format: a table, aligned so that it reads as one
const triggers: Record<BackupSpec["trigger"], BackupTrigger> = {
  schedule: BackupTrigger.SCHEDULE,
  request:  BackupTrigger.REQUEST,
  first:    BackupTrigger.FIRST,
  final:    BackupTrigger.FINAL,
  gap:      BackupTrigger.GAP,
  upgrade:  BackupTrigger.UPGRADE,
};

const encryptionAlgorithm = "AES-256-GCM";

/** The API message of a backup. `others` are all backups of the service: they decide when this one is deleted. */
export function backupMessage(
  backup: BackupObject,
  others: readonly BackupObject[],
  settings: BackupSettings,
  now: number,
): Backup {
  const { metadata, spec, status } = backup;
  const expiresAt = deletedAtOf(backup, others, settings);
  const { startedAt, finishedAt } = status;
  return create(BackupSchema, {
    id: metadata.id,
    serviceId: spec.serviceId,
    backupType: types[spec.backupType],
    type: types[spec.backupType],
    status: statuses[status.state],
    createdAt: timestampFromMs(metadata.createdAt),
    encryptionEnabled: true,
    encryptionAlgorithm,
    kind: kinds[spec.kind],
    trigger: triggers[spec.trigger],
    progressPct: status.progressPct,
    version: spec.version,
    databaseType: spec.databaseType,
    keyVersion: spec.keyVersion,
    operationId: spec.verification ?? spec.operationId,
    ...(spec.baseId === undefined ? {} : { baseBackupId: spec.baseId }),
    ...(status.sizeBytes === null ? {} : { sizeBytes: BigInt(status.sizeBytes) }),
    ...(status.sourceBytes === null ? {} : { sourceBytes: BigInt(status.sourceBytes) }),
    ...(status.error === null ? {} : { errorMessage: status.error.message }),
    ...(startedAt === null ? {} : { startedAt: timestampFromMs(startedAt) }),
    ...(startedAt === null ? {} : { durationSeconds: Math.max(0, (finishedAt ?? now) - startedAt) / 1_000 }),
    ...(finishedAt === null ? {} : { finishedAt: timestampFromMs(finishedAt) }),
    ...(expiresAt === null ? {} : { expiresAt: timestampFromMs(expiresAt) }),
    ...(status.verifiedAt === null ? {} : { verifiedAt: timestampFromMs(status.verifiedAt) }),
    ...(status.restoresTo === null ? {} : { restoresTo: timestampFromMs(status.restoresTo) }),
  });
}

/** The type that a request filters by; undefined for no filter. */
export function backupTypeOf(requested: BackupType | undefined): BackupSpec["backupType"] | undefined {
  if (requested === undefined) return undefined;
  return requested === BackupType.MANUAL ? "manual" : "automated";
}
