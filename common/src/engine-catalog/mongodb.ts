import { mongodbMetrics } from "../metrics/mongodb-metrics.ts";
import { clamp } from "./clamp.ts";
import type { EngineRow, PlanSize } from "./engine-row.ts";
import { postgresqlParameters } from "./postgresql-parameters.ts";
import { postgresqlSizing } from "./postgresql-sizing.ts";

const gib = 1024 ** 3;

/**
 * PostgreSQL's parameters that matter to documents, and those whose values on a replica are at least the primary's. The
 * others have the platform's defaults.
 */
const parameterNames = [
  "maintenance_work_mem",
  "max_connections",
  "max_locks_per_transaction",
  "max_prepared_transactions",
  "max_worker_processes",
  "shared_buffers",
  "synchronous_commit",
  "work_mem",
];

/** Maximum number of clients' connections. They share the sessions of PostgreSQL. */
export function mongodbClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 500, 500, 4_000));
}

/** Shares of the plan's memory for messages of clients, whose copies PostgreSQL, FerretDB and the front end have. */
const messageShares = { requests: 0.2, replies: 0.25 } as const;

/** Memory for large requests in progress, and for replies in progress, in bytes. */
export function mongodbMessageBytes({ memoryBytes }: Pick<PlanSize, "memoryBytes">): {
  readonly requests: number;
  readonly replies: number;
} {
  return {
    requests: Math.floor(memoryBytes * messageShares.requests),
    replies: Math.floor(memoryBytes * messageShares.replies),
  };
}

/** MongoDB's API by FerretDB, on PostgreSQL with the extension DocumentDB. */
export const mongodb: EngineRow = {
  title: "MongoDB API (FerretDB)",
  port: 27_017,
  frontEnd: { listener: "mongodb", enginePort: 5_432 },
  versions: ["ferretdb-2"],
  defaultVersion: "ferretdb-2",
  versionTitles: { "ferretdb-2": "FerretDB 2 on PostgreSQL 18", "8.0": "MongoDB 8.0" },
  missingVersions: [
    {
      version: "8.0",
      reason:
        "it needs packages of the operator (HOLDFAST_MONGOD_PACKAGES), of which this release only builds an image: use ferretdb-2",
    },
  ],
  topology: "primary_replicas",
  metrics: mongodbMetrics,
  parameters: postgresqlParameters.filter(({ name }) => parameterNames.includes(name)),
  managedParameters: [],
  sizing: postgresqlSizing,
  extensions: [],
  hasDatabases: true,
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  backups: { kind: "full", restorePoints: "any_second", increments: true, fork: true },
};
