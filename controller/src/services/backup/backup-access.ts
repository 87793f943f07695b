import type { Call } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { mayTouch, organizationOf } from "#access/caller.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { ArchiveObject } from "./archive.ts";
import type { BackupIndex } from "./backup-index.ts";
import { type BackupObject, isShown } from "./backup.ts";

/** What a caller may know of one service's backups. The service itself may be gone. */
export interface BackupOwner {
  readonly id: string;
  readonly service: Stored<ManagedServiceObject> | undefined;
  /** Undefined before the first backup. */
  readonly archive: Stored<ArchiveObject> | undefined;
}

/** Finds services with their backups for a caller: what is not the caller's organization's does not exist. */
export interface BackupAccess {
  /** Throws SERVICE_NOT_FOUND for what neither is a service nor has left backups. */
  owner(serviceId: string, call: Call): BackupOwner;
  /** Throws SERVICE_NOT_FOUND and BACKUP_NOT_FOUND. */
  backup(serviceId: string, backupId: string, call: Call): BackupOwner & { readonly backup: Stored<BackupObject> };
}

export function createBackupAccess(deps: {
  readonly access: Pick<ServiceAccess, "find">;
  readonly archives: Pick<Collection<ArchiveObject>, "get">;
  readonly index: Pick<BackupIndex, "of" | "get">;
}): BackupAccess {
  function owner(serviceId: string, call: Call): BackupOwner {
    const service = deps.access.find(serviceId, call);
    const archive = deps.archives.get(serviceId);
    const isTheirs = archive?.object.metadata.organizationId === organizationOf(call);
    const isLeft = service !== undefined || hasLeft(archive?.object);
    const theirs = isTheirs && isLeft && mayTouch(call, "managed-service", serviceId) ? archive : undefined;
    if (service === undefined && theirs === undefined)
      throw new HoldfastError("SERVICE_NOT_FOUND", "There is no such service in the organization.");
    return { id: serviceId, service, archive: theirs };
  }
  /** What is left of a service that is gone. */
  function hasLeft(archive: ArchiveObject | undefined): boolean {
    if (archive === undefined) return false;
    return archive.status.deleted !== null || deps.index.of(archive.metadata.id).some(({ object }) => isShown(object));
  }
  return {
    owner,
    backup(serviceId, backupId, call) {
      const found = owner(serviceId, call);
      const backup = deps.index.get(backupId);
      if (backup === undefined || backup.object.spec.serviceId !== serviceId || !isShown(backup.object))
        throw new HoldfastError("BACKUP_NOT_FOUND", "The service has no such backup.");
      return { ...found, backup };
    },
  };
}
