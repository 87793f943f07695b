import type { Metric } from "./metric.ts";

const valkey = ["valkey"];

/** Metrics of Valkey. */
// biome-ignore format: a table, aligned so that it reads as one
export const valkeyMetrics: readonly Metric[] = [
  { number: 24, name: "valkey_used_memory",                 unit: "bytes",            engines: valkey,     kind: "gauge", source: "engine",  description: "Memory allocated by valkey" },
  { number: 25, name: "valkey_keyspace_hits",               unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Lookups of existing keys" },
  { number: 26, name: "valkey_keyspace_misses",             unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Lookups of absent keys" },
  { number: 27, name: "valkey_evicted_keys",                unit: "per second",       engines: valkey,     kind: "rate",  source: "engine",  description: "Keys evicted because of the memory limit" },
  { number: 28, name: "valkey_connected_clients",           unit: "count",            engines: valkey,     kind: "gauge", source: "engine",  description: "Client connections that are open" },
];
