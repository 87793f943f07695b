import type { Backup, ManagedService } from "./answers.ts";
import type { RestoreChoice } from "./inputs.ts";
import { BackupMethods } from "./methods.ts";
import { type CallOptions, pathOf } from "./transport.ts";

/** Backups of a service, also of one that is deleted. */
export class Backups extends BackupMethods {
  /** Takes a manual backup; its operation tells how far it is. */
  create(serviceId: string, options?: CallOptions): Promise<Backup> {
    const path = pathOf("managed-services", serviceId, "backups");
    return this.transport.request("POST", path, { ...options, body: { backup_type: "manual" } });
  }

  /** Makes a new service with the data as they were at this time: RFC 3339, with Z or an offset. */
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
