import { valkeyMetrics } from "../metrics/valkey-metrics.ts";
import { clamp } from "./clamp.ts";
import type { EngineRow, EngineSizing, PlanSize } from "./engine-row.ts";
import { valkeyManaged, valkeyParameters } from "./valkey-parameters.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

export const valkeySizing = {
  parameters: ({ vcpu }) => ({ "io-threads": String(clamp(Math.floor(vcpu / 2), 1, 8)) }),
  // A save forks the process and concurrent writes copy pages; the agent and buffers need memory too.
  dataMemoryBytes: ({ memoryBytes }) => Math.floor((Math.max(memoryBytes - 192 * mib, 64 * mib) * 0.65) / mib) * mib,
} satisfies EngineSizing;

/** Maximum number of user sessions of an instance. */
export function valkeyClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 1_000, 500, 8_000));
}

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
