import { postgresqlMetrics } from "../metrics/postgresql-metrics.ts";
import type { EngineRow } from "./engine-row.ts";
import { postgresqlExtensions } from "./postgresql-extensions.ts";
import { postgresqlManaged, postgresqlParameters } from "./postgresql-parameters.ts";
import { postgresqlSizing } from "./postgresql-sizing.ts";

export const postgresql: EngineRow = {
  title: "PostgreSQL",
  aliases: ["postgres"],
  port: 5432,
  versions: ["17", "18"],
  defaultVersion: "17",
  topology: "primary_replicas",
  metrics: postgresqlMetrics,
  parameters: postgresqlParameters,
  managedParameters: postgresqlManaged,
  sizing: postgresqlSizing,
  extensions: postgresqlExtensions,
  hasDatabases: true,
  hasDatabaseOwners: true,
  hasQueues: true,
  hasQueryStatistics: true,
  hasWarmPool: true,
  hasPreparedDisks: true,
  upgradesInPlace: false,
  backups: { kind: "full", restorePoints: "any_second", increments: true, fork: true },
  pooler: { port: 5433, modes: ["transaction", "session"] },
};
