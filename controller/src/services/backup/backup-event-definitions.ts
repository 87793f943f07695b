import type { EventDefinition } from "#kernel/outbox/event-definition.ts";

const backupData = {
  service_id: { type: "uuid", meaning: "the service" },
  backup_id: { type: "uuid", meaning: "the backup" },
  backup_type: { type: "string", meaning: "`automated` or `manual`" },
  duration_seconds: { type: "number", meaning: "duration of the backup" },
} as const satisfies EventDefinition["data"];

const backupExample = {
  service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
  backup_id: "0198f2a4-8c20-7b13-a07d-3e6f9d1c5b42",
  backup_type: "automated",
  duration_seconds: 41.5,
};

/** Events of backups, drills and the log's archive. */
export const backupEventDefinitions = {
  "backup.completed": {
    when: "an automated or manual backup is complete: stored and verified",
    data: { ...backupData, size_bytes: { type: "number", meaning: "size of the backup in the object store" } },
    example: { ...backupExample, size_bytes: 52_428_800 },
  },
  "backup.failed": {
    when: "a backup failed or was canceled",
    data: { ...backupData, error_message: { type: "string", meaning: "description of the failure" } },
    example: { ...backupExample, error_message: "The object store did not respond." },
  },
  "backup.gap": {
    when: "the log of a service's changes has a gap: log was removed before it was stored, or a restore or drill found stored log lost or damaged; a new base backup follows, unless a later one exists",
    data: {
      service_id: { type: "uuid", meaning: "the service" },
      since: { type: "time", meaning: "the last time before the gap" },
      message: { type: "string", meaning: "the cause, and what to do" },
    },
    example: {
      service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
      since: "2026-11-22T10:00:00.000Z",
      message:
        "Log was removed from the machine before it was stored. A new backup begins now; until it is complete, restore to a time before the gap.",
    },
  },
  "backup.drill_failed": {
    when: "a drill of a service's backups failed: the data could not be restored, or failed a check",
    data: {
      service_id: { type: "uuid", meaning: "the service" },
      drill_id: { type: "uuid", meaning: "the drill" },
      backup_id: { type: "uuid", meaning: "the newest backup at that time" },
      code: {
        type: "string",
        meaning:
          "`check_failed`, `damaged`, `absent`, `target_not_reached`, `plan_too_small`, `machine_failed`, `timed_out`...",
      },
      error_message: { type: "string", meaning: "description of the failure" },
    },
    example: {
      service_id: "0198f2a4-6f0e-7c41-9a55-1d2b0c9e7f10",
      drill_id: "0198f2a4-8d31-7c02-9d4e-6a1b7c3d5e81",
      backup_id: backupExample.backup_id,
      code: "check_failed",
      error_message: "structure of the backup: pg_amcheck ended with 2",
    },
  },
} as const satisfies Readonly<Record<`backup.${"completed" | "failed" | "gap" | "drill_failed"}`, EventDefinition>>;
