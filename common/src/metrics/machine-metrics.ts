import type { Metric } from "./metric.ts";

const every: readonly string[] = [];

/** Metrics of every machine and engine. */
// biome-ignore format: a table, aligned so that it reads as one
export const machineMetrics: readonly Metric[] = [
  { number: 1,  name: "cpu",                                unit: "percent",          engines: every,      kind: "rate",  source: "machine", description: "CPU time of the machine, as a share of its plan" },
  { number: 2,  name: "memory",                             unit: "percent",          engines: every,      kind: "gauge", source: "machine", description: "Memory of the machine as a share of its plan: all memory in use except inactive file cache" },
  { number: 3,  name: "disk",                               unit: "percent",          engines: every,      kind: "gauge", source: "machine", description: "Used share of the requested storage" },
  { number: 4,  name: "disk_iops",                          unit: "per second",       engines: every,      kind: "rate",  source: "machine", description: "Completed reads and writes of the data disk" },
  { number: 5,  name: "connections",                        unit: "count",            engines: every,      kind: "gauge", source: "engine",  description: "Open client connections of users" },
  { number: 6,  name: "network_in",                         unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", description: "Bytes received by the machine's network interface" },
  { number: 7,  name: "network_out",                        unit: "bytes per second", engines: every,      kind: "rate",  source: "machine", description: "Bytes sent by the machine's network interface" },
  { number: 8,  name: "replication_lag_seconds",            unit: "seconds",          engines: every,      kind: "gauge", source: "engine",  description: "Lag of a replica behind its primary", nodes: "replicas" },
  { number: 34, name: "health",                             unit: "level",            engines: every,      kind: "gauge", source: "agent",   description: "0 healthy, 1 degraded, 2 unhealthy, by the agent's checks; no value while the agent does not respond or the engine is stopped" },
  { number: 43, name: "replication_lag_bytes",              unit: "bytes",            engines: every,      kind: "gauge", source: "engine",  description: "Log of the primary that a replica has not replayed yet", nodes: "replicas" },
];
