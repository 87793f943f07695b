import { mysqlMetrics } from "../metrics/mysql-metrics.ts";
import type { EngineRow } from "./engine-row.ts";
import { mysqlManaged, mysqlParameters } from "./mysql-parameters.ts";
import { mysqlSizing } from "./mysql-sizing.ts";

export const mysql: EngineRow = {
  title: "MySQL",
  port: 3306,
  versions: ["9.7"],
  defaultVersion: "9.7",
  topology: "primary_replicas",
  metrics: mysqlMetrics,
  parameters: mysqlParameters,
  managedParameters: mysqlManaged,
  sizing: mysqlSizing,
  extensions: [],
  hasDatabases: true,
  hasQueues: false,
  hasQueryStatistics: true,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  backups: { kind: "snapshot", restorePoints: "any_second", increments: false, fork: true },
  pooler: { port: 3307, modes: [] },
};
