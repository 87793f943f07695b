import { valkeyMetrics } from "../metrics/valkey-metrics.ts";
import type { EngineRow } from "./engine-row.ts";
import { valkeyManaged, valkeyParameters } from "./valkey-parameters.ts";
import { valkeySizing } from "./valkey-sizing.ts";

export const valkey: EngineRow = {
  title: "Valkey",
  port: 6379,
  versions: ["8.1", "9"],
  defaultVersion: "8.1",
  topology: "primary_replicas",
  metrics: valkeyMetrics,
  parameters: valkeyParameters,
  managedParameters: valkeyManaged,
  sizing: valkeySizing,
  extensions: [],
  hasDatabases: false,
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  backups: { kind: "snapshot", restorePoints: "snapshots", increments: false, fork: true },
};
