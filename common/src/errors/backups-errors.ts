import type { ErrorEntry } from "./error-entry.ts";

/** Errors of backups. */
// biome-ignore format: a table, aligned so that it reads as one
export const backupsErrors = {
  BACKUP_NOT_FOUND:         { grpc: "NOT_FOUND",           status: 404, title: "No such backup",                        help: "It does not exist, was deleted or has expired. List the backups of the service to see their ids." },
  RESTORE_POINT_UNAVAILABLE: { grpc: "FAILED_PRECONDITION", status: 422, title: "The restore point is not available",   help: "Choose a time between earliest and latest, outside the gaps." },
} as const satisfies Record<string, ErrorEntry>;
