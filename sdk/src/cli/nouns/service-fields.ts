/** Columns of services in tables. */
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

/** What is shown of one. */
export const serviceFields = [
  "id",
  "name",
  "status",
  "health",
  "database_type",
  "version",
  "plan_name",
  "storage_size_gb",
  "storage_tier",
  "zone",
  "hostname",
  "private_hostname",
  "port",
  "allowed_cidrs",
  "deletion_protection",
  "expires_at",
  "maintenance_window",
  "pending_updates",
  "tags",
  "created_at",
  "error",
];
