import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";

/** The facts of a service's backups that its reconciler needs. */
export interface ServiceBackups {
  /** Parts of the instance spec: the source of its data, and the archive of its log. */
  instanceOf(service: ManagedServiceObject): Pick<InstanceSpec, "source" | "archive">;
  /** True if the machines of a deleted service may be deleted; false while its final backup is taken. */
  canDeleteMachines(service: ManagedServiceObject): boolean;
  /**
   * Newest time that the archived log can restore, in milliseconds since 1970; before the first backup, the end of the
   * archived log. Undefined without an archive.
   */
  newestRecoveryPoint(service: ManagedServiceObject): number | undefined;
  /** True if the machines of a deleted service are retained, powered off, because it has no final backup. */
  retainsDisks(service: ManagedServiceObject): boolean;
  /** Adds the record for an undelete to the transaction that removes the service. */
  recordDeletion(unit: Changes, service: ManagedServiceObject, users: readonly DatabaseUserObject[]): void;
}
