import type { RestoreObservation } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";

const advice =
  "The object store lost or changed an object of the source: restore to a moment before it, or after the source's next backup. Its backups.restorable and backups.gaps have the moments.";

/**
 * Why a restore failed, for users; for lost or changed data with what to do. `refused`: reason why its machine cannot
 * have the memory that it lacks.
 */
export function restoreFailure({ reason, damagedObject }: RestoreObservation, refused?: string): string {
  if (damagedObject !== "") return `${reason.replace(/\.$/, "")}. ${advice}`;
  return refused === undefined ? reason : `${reason} ${refused}`;
}
