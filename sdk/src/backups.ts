import type { Backup, ManagedService } from "./responses.ts";
import type { RestoreChoice } from "./requests.ts";
import { BackupMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Backups of a service, also of a deleted one. */
export class Backups extends BackupMethods {
  /** Takes a manual backup; its operation has the progress. */
  create(serviceId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups");
    return this.transport.request("POST", path, { ...options, body: { backup_type: "manual" } });
  }

  /** Creates a service with the data as of this time: RFC 3339 with Z or an offset, such as "2026-11-22T10:00:00Z". */
  restoreTo(
    serviceId: string,
    restorePoint: string,
    target: RestoreChoice,
    options?: CallOptions,
  ): Promise<ManagedService> {
    const path = pathOf("managed-services", serviceId, "backups", "restore");
    return this.transport.request("POST", path, { ...options, body: { restore_point: restorePoint, ...target } });
  }
}
