import { defineOperation } from "#operation/operation-definition.ts";

const of = "its backups";

/** Operations of a service's backups: they may run concurrently with others of their service. */
export const backupOperations = {
  backup: defineOperation({ type: "backup", of }),
  verify_backup: defineOperation({ type: "verify_backup", of }),
  drill: defineOperation({ type: "drill", of }),
} as const;
