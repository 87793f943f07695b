import { HoldfastError } from "@holdfast/common/errors.ts";
import { requireCapacity } from "#kernel/store/quota.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { operationMembers } from "../service/operation-members.ts";
import { type BackupObject, hasEnded, isVisible, manualBackupQuota } from "./backup.ts";

/** Maximum number of pending backups of a service, in addition to the running one. */
const waitingMax = 3;

/** Throws WRONG_STATE with the reason why no backup of the service can be taken now. */
export function refuseBackup(service: ManagedServiceObject): void {
  const { metadata, status } = service;
  const members = operationMembers(service, undefined);
  if (metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service is being deleted.", { members });
  if (status.state === "Running" || status.state === "Upgrading") return;
  const next = status.state === "Stopped" ? "Start it first." : "Wait until it is Running.";
  throw new HoldfastError("WRONG_STATE", `The service is ${status.state}. ${next}`, { members });
}

/** Throws if the service has too many manual backups or too many pending ones (409). */
export function refuseBeyondQuota(backups: readonly BackupObject[]): void {
  const visible = backups.filter(isVisible);
  requireCapacity(manualBackupQuota, backups, "The service has");
  const open = visible.filter((backup) => !hasEnded(backup));
  if (open.length > waitingMax)
    throw new HoldfastError(
      "OPERATION_IN_PROGRESS",
      `A backup of the service runs and ${waitingMax} are pending. Try again when one of them has ended.`,
    );
}

/** Throws WRONG_STATE unless the backup is completed. */
export function requireCompleted({ status }: BackupObject): void {
  if (status.state === "completed") return;
  throw new HoldfastError("WRONG_STATE", `The backup must be completed; it is ${status.state}.`);
}
