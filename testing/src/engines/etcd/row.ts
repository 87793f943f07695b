import type { EngineRow } from "@holdfast/common/engine-catalog/engine-row.ts";
import { parameterOf } from "@holdfast/common/engine-catalog/parameter.ts";

/** etcd as a managed service: an engine of the tests, whose members are a real quorum of peers. */
export const etcd: EngineRow = {
  title: "etcd",
  port: 2379,
  versions: ["3.5"],
  defaultVersion: "3.5",
  topology: "peers",
  parameters: [
    parameterOf("drain-seconds", "integer", "0", { minimum: 0, maximum: 600 }, "Time that a drain takes"),
    parameterOf(
      "snapshot-count",
      "integer",
      "10000",
      { minimum: 100, maximum: 1_000_000, needsRestart: true },
      "Entries between snapshots",
    ),
  ],
  managedParameters: [],
  sizing: { parameters: () => ({}) },
  extensions: [],
  hasDatabases: true,
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
};
