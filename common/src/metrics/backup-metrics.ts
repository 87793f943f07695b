import { engineCatalog } from "../engine-catalog/engine-catalog.ts";
import type { Metric } from "./metric.ts";

/** Engines whose log is archived. */
const archived = engineCatalog
  .filter(({ backups }) => backups?.restorePoints === "any_second")
  .map((row) => row.engine);

/** Metrics of backups. */
// biome-ignore format: a table, aligned so that it reads as one
export const backupMetrics: readonly Metric[] = [
  { number: 41, name: "restorable_age_seconds",             unit: "seconds",          engines: archived,   kind: "gauge", source: "agent",   description: "Age of the recovery point: the newest time whose log is durable in the object store", nodes: "primary" },
  { number: 42, name: "archive_waiting_bytes",              unit: "bytes",            engines: archived,   kind: "gauge", source: "agent",   description: "Log that is not in the object store yet and is retained by the engine", nodes: "primary" },
];
