import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { type BackupObject, openBackup, serviceOfBackup } from "./backup.ts";

/** Finds the backups of one service without looking at those of all others. */
export interface BackupIndex {
  /** Oldest first. */
  of(serviceId: string): Stored<BackupObject>[];
  /** All that have not ended, of every service. */
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
