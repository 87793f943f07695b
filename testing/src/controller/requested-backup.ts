/** A requested manual backup of a PostgreSQL. */
export const requestedBackup = {
  serviceId: "service-1",
  databaseType: "postgresql",
  version: "17",
  backupType: "manual",
  kind: "full",
  trigger: "request",
  operationId: "op-1",
  keyVersion: 1,
  wrappedKey: "",
} as const;
