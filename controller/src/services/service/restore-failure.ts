import type { RestoreObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";

const advice =
  "The object store lost or changed an object of the source: restore to a time before it, or after the source's next backup. The source's backups.restorable and backups.gaps list the times.";

/**
 * The reason of a failed restore, for users, with advice if data of the source were lost or changed. `refused`: reason
 * why the machine cannot get the memory that it needs.
 */
export function restoreFailure({ reason, damagedObject }: RestoreObservation, refused?: string): string {
  if (damagedObject !== "") return `${reason.replace(/\.$/, "")}. ${advice}`;
  return refused === undefined ? reason : `${reason} ${refused}`;
}
