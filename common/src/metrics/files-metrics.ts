import type { Metric } from "./metric.ts";

const files = ["files"];

/** Metrics of files services. */
// biome-ignore format: a table, aligned so that it reads as one
export const filesMetrics: readonly Metric[] = [
  { number: 44, name: "files_requests_per_sec",             unit: "per second",       engines: files,      kind: "rate",  source: "engine",  description: "Requests of clients" },
  { number: 45, name: "files_errors_per_sec",               unit: "per second",       engines: files,      kind: "rate",  source: "engine",  description: "Requests that failed with a status of 500 or more" },
  { number: 46, name: "files_bytes_in_per_sec",             unit: "bytes per second", engines: files,      kind: "rate",  source: "engine",  description: "Bytes received from clients" },
  { number: 47, name: "files_bytes_out_per_sec",            unit: "bytes per second", engines: files,      kind: "rate",  source: "engine",  description: "Bytes sent to clients" },
  { number: 48, name: "files_objects",                      unit: "count",            engines: files,      kind: "gauge", source: "engine",  description: "Objects in the bucket, counted every few minutes" },
  { number: 49, name: "files_bytes",                        unit: "bytes",            engines: files,      kind: "gauge", source: "engine",  description: "Bytes of the objects in the bucket, counted every few minutes" },
];
