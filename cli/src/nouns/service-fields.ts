/** Columns of a table of services. */
export const serviceColumns = [
  "name",
  "status",
  "database_type",
  "version",
  "plan_name",
  "hostname",
  "port",
  "created_at",
];

/** Columns of a table of deleted services. */
export const deletedColumns = ["id", "name", "database_type", "version", "plan_name", "deleted_at", "undelete_until"];

/** Fields of one service. */
export const serviceFields = [
  "id",
  "name",
  "status",
  "health",
  "database_type",
  "version",
  "plan_name",
  "storage_size_gb",
  "storage_autoscale",
  "storage_tier",
  "zone",
  "hostname",
  "private_hostname",
  "port",
  "allowed_cidrs",
  "deletion_protection",
  "expires_at",
  "replication",
  "quorum",
  "pooler",
  "layout_mode",
  "server_collation",
  "maintenance_window",
  "pending_updates",
  "backups",
  "tags",
  "created_at",
  "error",
];

/** `name` is the first label of the hostname, which commands accept as the node. */
export const nodeColumns = ["name", "role", "status", "zone", "id", "hostname"];
