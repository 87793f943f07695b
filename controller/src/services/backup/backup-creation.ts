import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type ManagedServiceObject, serviceSubject } from "../service/managed-service.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import { archiveKind, type ArchiveObject, newArchive } from "./archive/archive.ts";
import { backupKeyKind, type BackupKeyObject, newBackupKey, newDataKey } from "./backup-key.ts";
import { backupKind, type BackupObject, type BackupSpec, newBackupObject } from "./backup.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "./backup-operations.ts";

/** Dependencies of `newBackup`. */
export interface BackupCreation {
  readonly archives: Collection<ArchiveObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/**
 * Adds a pending backup and its operation to the unit of work. The commit throws Conflict if another backup of the
 * service was added concurrently. Throws NOT_SUPPORTED for an engine without backups.
 */
export function newBackup(
  unit: Changes,
  service: ManagedServiceObject,
  request: Pick<BackupSpec, "backupType" | "trigger" | "baseId">,
  deps: BackupCreation,
): { readonly backup: BackupObject; readonly operation: OperationObject } {
  const { archives, sealer, clock, newId } = deps;
  const { id: serviceId, organizationId } = service.metadata;
  const { databaseType, version } = service.spec;
  const facts = engineOf(databaseType)?.backups;
  if (facts === undefined) throw new HoldfastError("NOT_SUPPORTED", `${databaseType} has no backups.`);
  const now = clock.now();
  const id = newId();
  const operationId = newId();
  const subject = serviceSubject(serviceId);
  const operation = newOperation({ id: operationId, subject, organizationId, type: backupOperations.backup, now });
  const key = newDataKey(keyFor(unit, service, now, deps), id, sealer);
  const kind = request.baseId === undefined ? facts.kind : "incremental";
  const spec = { serviceId, databaseType, version, kind, operationId, ...request, ...key } as const;
  const backup = newBackupObject(id, organizationId, spec, now);
  const archive = archives.get(serviceId);
  const counted = withBackupCounted(archive?.object ?? newArchive(service, now, now), backup);
  if (archive === undefined) unit.create(archiveKind, counted);
  else unit.update(archiveKind, archive, counted);
  unit.create(backupKind, backup);
  unit.create(operationKind, operation);
  return { backup, operation };
}

/** The service's backup key. It is created with the service's first backup. */
function keyFor(
  unit: Changes,
  { metadata }: ManagedServiceObject,
  now: number,
  { backupKeys, sealer }: Pick<BackupCreation, "backupKeys" | "sealer">,
): BackupKeyObject {
  const stored = backupKeys.get(metadata.id);
  if (stored !== undefined) {
    unit.onlyWhile({ key: keyOf(backupKeyKind, metadata.id), modRevision: stored.modRevision });
    return stored.object;
  }
  const key = newBackupKey(metadata.id, metadata.organizationId, sealer, now);
  unit.create(backupKeyKind, key);
  return key;
}

function withBackupCounted(archive: ArchiveObject, { metadata, spec }: BackupObject): ArchiveObject {
  const lastAutomatedAt = spec.backupType === "automated" ? metadata.createdAt : archive.status.lastAutomatedAt;
  const status = { ...archive.status, requests: archive.status.requests + 1, lastAutomatedAt };
  return { ...archive, metadata: { ...archive.metadata, updatedAt: metadata.createdAt }, status };
}
