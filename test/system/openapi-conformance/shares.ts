/** Operations that are tested together; a run of each takes some minutes. */
export interface Share {
  /** Tags of the document: each is in one share. */
  readonly tags: readonly string[];
  /** Operations of other shares, by their ids, that create what these need; they are in every phase but coverage. */
  readonly helpers: readonly string[];
}

export type ShareName = "accounts" | "services" | "data" | "engines" | "apps";

const serviceHelpers = ["createManagedService", "listManagedServices"];

// biome-ignore format: a table, aligned so that it reads as one
export const shares: Readonly<Record<ShareName, Share>> = {
  accounts: {
    tags: [
      "ApiKey", "Audit", "Catalog", "Channel", "Inference", "MetricsExport", "Organization", "Session", "Task", "Token",
      "User", "Webhook",
    ],
    helpers: [],
  },
  services: {
    tags: ["Alert", "Backup", "Configuration", "Event", "Health", "Maintenance", "ManagedService", "Node", "Operation"],
    helpers: [],
  },
  data: {
    tags: ["Database", "DatabaseUser", "Metric", "Query", "QueryConsole", "Queue"],
    helpers: serviceHelpers,
  },
  engines: {
    tags: ["Assessment", "ConsumerGroup", "Files", "Index", "Topic"],
    helpers: serviceHelpers,
  },
  apps: {
    tags: ["App", "AppAuth", "AppDeployment", "Pipeline", "Project", "Stack"],
    helpers: serviceHelpers,
  },
};
