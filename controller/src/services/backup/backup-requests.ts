import { HoldfastError } from "@holdfast/common/errors.ts";
import { requireRoom } from "#kernel/store/quota.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { operationMembers } from "../service/operation-members.ts";
import { type BackupObject, hasEnded, isShown, manualBackupQuota } from "./backup.ts";

/** One runs, so many wait. */
const waitingMax = 3;

/** Pure: throws the 409 that says why no backup can be taken of the service now. */
export function refuseBackup(service: ManagedServiceObject): void {
  const { metadata, status } = service;
  const members = operationMembers(service, undefined);
  if (metadata.deletionRequestedAt !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service is being deleted.", { members });
  if (status.state === "Running" || status.state === "Upgrading") return;
  const next = status.state === "Stopped" ? "Start it first." : "Wait until it is Running.";
  throw new HoldfastError("WRONG_STATE", `The service is ${status.state}. ${next}`, { members });
}

/** Pure: throws the 409 that says why a service with these backups gets no further manual one now. */
export function refuseMore(backups: readonly BackupObject[]): void {
  const shown = backups.filter(isShown);
  requireRoom(manualBackupQuota, backups, "The service has");
  const open = shown.filter((backup) => !hasEnded(backup));
  if (open.length > waitingMax)
    throw new HoldfastError(
      "OPERATION_IN_PROGRESS",
      `A backup of the service runs and ${waitingMax} wait; try again when one of them has ended.`,
    );
}

/** Pure: throws the 409 for a backup that cannot be restored, or read. */
export function requireCompleted({ status }: BackupObject): void {
  if (status.state === "completed") return;
  throw new HoldfastError("WRONG_STATE", `The backup is ${status.state}; this needs a completed one.`);
}
