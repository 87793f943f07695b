import type { Metric } from "./metric.ts";

const postgresql = ["postgresql"];

/** Metrics of queues. */
// biome-ignore format: a table, aligned so that it reads as one
export const queueMetrics: readonly Metric[] = [
  { number: 37, name: "queue_ready_messages",               unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Claimable messages in all queues of the service; estimated above 10,000" },
  { number: 38, name: "queue_inflight_messages",            unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Claimed messages in all queues of the service; estimated above 10,000" },
  { number: 39, name: "queue_dead_messages",                unit: "count",            engines: postgresql, kind: "gauge", source: "queues",  description: "Dead messages in all queues of the service; estimated above 10,000" },
  { number: 40, name: "queue_oldest_age_seconds",           unit: "seconds",          engines: postgresql, kind: "gauge", source: "queues",  description: "Age of the oldest claimable message; 0 if there is none" },
];
