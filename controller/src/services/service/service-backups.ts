import type { InstanceSpec } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { DatabaseUserObject } from "../contents/user/database-user.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** What the life of a service has to do with its backups. */
export interface ServiceBackups {
  /** What its machine must know: where its data comes from, and how its log is archived. */
  instanceOf(service: ManagedServiceObject): Pick<InstanceSpec, "source" | "archive">;
  /** May a service that is being deleted lose its machine? Not while its final backup is taken. */
  mayGo(service: ManagedServiceObject): boolean;
  /**
   * Newest moment, in milliseconds since 1970, that the service's log brings back; before its first backup, up to which the log
   * is in the store. Undefined where no log is archived.
   */
  newestPoint(service: ManagedServiceObject): number | undefined;
  /** Do its machines stay, off, when it is deleted? Of one without a backup of its last moment. */
  keepsDisk(service: ManagedServiceObject): boolean;
  /** Adds what lets the service come back to the transaction that forgets it. */
  leave(unit: UnitOfWork, service: ManagedServiceObject, users: readonly DatabaseUserObject[]): void;
}
