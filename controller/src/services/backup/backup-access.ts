import type { Call } from "@holdfast/common/call.ts";
import { familyOf, type ServiceFamily } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ArchiveObject } from "./archive/archive.ts";
import { type BackupIndex, type BackupObject, isVisible } from "./backup.ts";

/** The backups of one service that a caller may read. The service itself may be deleted. */
export interface BackupOwner {
  readonly id: string;
  readonly service: Stored<ManagedServiceObject> | undefined;
  /** Undefined before the first backup. */
  readonly archive: Stored<ArchiveObject> | undefined;
}

/** Finds a caller's services with their backups. Objects of other organizations are reported as not found. */
export interface BackupAccess {
  /** Throws SERVICE_NOT_FOUND if the id is neither a service nor a deleted one with backups. */
  owner(serviceId: string, call: Call): BackupOwner;
  /** Throws SERVICE_NOT_FOUND and BACKUP_NOT_FOUND. */
  backup(serviceId: string, backupId: string, call: Call): BackupOwner & { readonly backup: Stored<BackupObject> };
}

export function createBackupAccess(deps: {
  readonly access: Pick<ServiceAccess, "find">;
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly index: Pick<BackupIndex, "of" | "get">;
  /** Deleted services of other families are not found. Databases by default. */
  readonly family?: ServiceFamily;
}): BackupAccess {
  const { family = "databases" } = deps;
  function owner(serviceId: string, call: Call): BackupOwner {
    const service = deps.access.find(serviceId, call);
    const archive = deps.archives.get(serviceId);
    const isOwn = archive?.object.metadata.organizationId === organizationOf(call);
    const exists = service !== undefined || hasBackupsLeft(archive?.object);
    const deleted = archive?.object.status.deleted?.service;
    const isOfFamily = deleted === undefined || familyOf(deleted.spec.databaseType) === family;
    const accessible =
      isOwn && exists && isOfFamily && mayTouch(call, "managed-service", serviceId) ? archive : undefined;
    if (service === undefined && accessible === undefined)
      throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service in the organization.");
    return { id: serviceId, service, archive: accessible };
  }
  /** True if a deleted service can be undeleted or has manual backups. Its other backups are deleted with it. */
  function hasBackupsLeft(archive: ArchiveObject | undefined): boolean {
    if (archive === undefined) return false;
    if (archive.status.deleted !== null) return true;
    const backups = deps.index.of(archive.metadata.id);
    return backups.some(({ object }) => isVisible(object) && object.spec.backupType === "manual");
  }
  return {
    owner,
    backup(serviceId, backupId, call) {
      const found = owner(serviceId, call);
      const backup = deps.index.get(backupId);
      if (backup === undefined || backup.object.spec.serviceId !== serviceId || !isVisible(backup.object))
        throw new HoldfastError("BACKUP_NOT_FOUND", "The service has no such backup.");
      return { ...found, backup };
    },
  };
}
