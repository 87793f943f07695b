/** A body that each method takes, shown in its description. A test reads them with the method's own reader. */
export const examples: Readonly<Record<string, object>> = {
  "holdfast.v1.ManagedServiceService.CreateManagedService": {
    name: "orders",
    database_type: "postgresql",
    plan_name: "tier-1",
    storage_size_gb: 1,
    allowed_cidrs: ["127.0.0.0/8"],
    tags: { team: "shop" },
  },
  "holdfast.v1.ManagedServiceService.UpdateManagedService": { ttl_hours: 24, tags: { team: "shop", stage: "test" } },
  "holdfast.v1.DatabaseUserService.CreateDatabaseUser": { username: "reports", role: "readonly" },
  "holdfast.v1.DatabaseService.CreateDatabase": { name: "archive" },
  "holdfast.v1.ConfigurationService.UpdateConfiguration": {
    parameters: { work_mem: "8MB", log_min_duration_statement: null },
  },
};
