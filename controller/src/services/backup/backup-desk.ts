import type { Clock } from "@holdfast/common/clock.ts";
import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type ManagedServiceObject, serviceSubject } from "../service/managed-service.ts";
import { newOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { archiveKind, type ArchiveObject, newArchive } from "./archive.ts";
import { backupKeyKind, type BackupKeyObject, newBackupKey, newDataKey } from "./backup-key.ts";
import { backupKind, type BackupObject, type BackupSpec, newBackup } from "./backup.ts";

export interface BackupDeskDeps {
  readonly archives: Collection<ArchiveObject>;
  readonly backupKeys: Collection<BackupKeyObject>;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly newId: () => string;
}

/** The only way to a new backup, whoever wants it. */
export interface BackupDesk {
  /**
   * Adds a backup that waits for its turn, and its operation, to the unit of work; it commits only if no other backup of the
   * service was added meanwhile. Throws NOT_SUPPORTED for an engine without backups.
   */
  add(
    unit: UnitOfWork,
    service: ManagedServiceObject,
    asked: Pick<BackupSpec, "backupType" | "trigger" | "baseId">,
  ): { readonly backup: BackupObject; readonly operation: OperationObject };
}

export function createBackupDesk({ archives, backupKeys, sealer, clock, newId }: BackupDeskDeps): BackupDesk {
  function keyFor(unit: UnitOfWork, { metadata }: ManagedServiceObject, now: number): BackupKeyObject {
    const stored = backupKeys.get(metadata.id);
    if (stored !== undefined) {
      unit.onlyWhile({ key: keyOf(backupKeyKind, metadata.id), modRevision: stored.modRevision });
      return stored.object;
    }
    const key = newBackupKey(metadata.id, metadata.organizationId, sealer, now);
    unit.create(backupKeyKind, key);
    return key;
  }

  return {
    add(unit, service, asked) {
      const { id: serviceId, organizationId } = service.metadata;
      const { databaseType, version } = service.spec;
      const facts = engineOf(databaseType)?.backups;
      if (facts === undefined) throw new HoldfastError("NOT_SUPPORTED", `${databaseType} has no backups.`);
      const now = clock.now();
      const id = newId();
      const operationId = newId();
      const subject = serviceSubject(serviceId);
      const operation = newOperation({ id: operationId, subject, organizationId, type: "backup", now });
      const key = newDataKey(keyFor(unit, service, now), id, sealer);
      const kind = asked.baseId === undefined ? facts.kind : "incremental";
      const spec = { serviceId, databaseType, version, kind, operationId, ...asked, ...key } as const;
      const backup = newBackup(id, organizationId, spec, now);
      const archive = archives.get(serviceId);
      const counted = noted(archive?.object ?? newArchive(service, now, now), backup);
      if (archive === undefined) unit.create(archiveKind, counted);
      else unit.update(archiveKind, archive, counted);
      unit.create(backupKind, backup);
      unit.create(operationKind, operation);
      return { backup, operation };
    },
  };
}

function noted(archive: ArchiveObject, { metadata, spec }: BackupObject): ArchiveObject {
  const lastAutomatedAt = spec.backupType === "automated" ? metadata.createdAt : archive.status.lastAutomatedAt;
  const status = { ...archive.status, requests: archive.status.requests + 1, lastAutomatedAt };
  return { ...archive, metadata: { ...archive.metadata, updatedAt: metadata.createdAt }, status };
}
