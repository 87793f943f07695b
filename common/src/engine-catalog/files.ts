import { filesMetrics } from "../metrics/files-metrics.ts";
import { clamp } from "./clamp.ts";
import type { EngineRow, PlanSize } from "./engine-row.ts";

const gib = 1024 ** 3;

/** Object storage: an S3 server with one bucket on the data disk. */
export const files: EngineRow = {
  title: "Files",
  family: "files",
  port: 443,
  unprivilegedPort: 9000,
  versions: ["1"],
  defaultVersion: "1",
  topology: "primary_replicas",
  metrics: filesMetrics,
  parameters: [],
  managedParameters: [],
  sizing: { parameters: () => ({}) },
  extensions: [],
  hasDatabases: false,
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  retainsDisk: true,
};

/** Region in the signatures of clients; a files service has only this one. */
export const filesRegion = "us-east-1";

/** Prefixes of access key ids, by which the front chooses the server for a request. */
export const filesKeyPrefixes = { readwrite: "HFRW", readonly: "HFRO" } as const;

/** Maximum number of clients' connections. */
export function filesClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 500, 500, 4_000));
}
