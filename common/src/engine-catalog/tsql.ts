import { tsqlMetrics } from "../metrics/tsql-metrics.ts";
import type { EngineRow } from "./engine-row.ts";
import { postgresqlExtensions } from "./postgresql-extensions.ts";
import { postgresqlManaged, postgresqlParameters } from "./postgresql-parameters.ts";
import { postgresqlSizing } from "./postgresql-sizing.ts";

/** PostgreSQL with the T-SQL front end: its parameters, sizes and backups are PostgreSQL's. */
export const tsql: EngineRow = {
  title: "T-SQL on PostgreSQL",
  port: 1433,
  frontEnd: { listener: "tds", engineListener: "postgresql", enginePort: 5432 },
  versions: ["17"],
  defaultVersion: "17",
  topology: "primary_replicas",
  parameters: postgresqlParameters,
  managedParameters: postgresqlManaged,
  sizing: postgresqlSizing,
  extensions: postgresqlExtensions,
  hasDatabases: false,
  layoutModes: ["single-db", "multi-db"],
  serverCollations: [
    "SQL_Latin1_General_CP1_CI_AS",
    "SQL_Latin1_General_CP1_CS_AS",
    "SQL_Latin1_General_CP1_CI_AI",
    "Latin1_General_BIN2",
    "Latin1_General_100_CI_AS_SC_UTF8",
  ],
  hasQueues: false,
  hasQueryStatistics: false,
  hasAssessment: true,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: false,
  metrics: tsqlMetrics,
  backups: { kind: "full", restorePoints: "any_second", increments: true, fork: true },
};
