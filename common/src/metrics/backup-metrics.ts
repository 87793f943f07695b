import type { Metric } from "./metric.ts";

const postgresql = ["postgresql"];

/** Metrics of backups. */
// biome-ignore format: a table, aligned so that it reads as one
export const backupMetrics: readonly Metric[] = [
  { slot: 41, name: "restorable_age_seconds",             unit: "seconds",          engines: postgresql, kind: "gauge", source: "agent",   description: "Age of the recovery point: the newest time whose log is durable in the object store", nodes: "primary" },
  { slot: 42, name: "archive_waiting_bytes",              unit: "bytes",            engines: postgresql, kind: "gauge", source: "agent",   description: "Log that is not in the object store yet and is retained by the engine", nodes: "primary" },
];
