import type { Metric } from "./metric.ts";

const kafka = ["kafka"];

/** Metrics of Kafka. */
// biome-ignore format: a table, aligned so that it reads as one
export const kafkaMetrics: readonly Metric[] = [
  { number: 29, name: "kafka_messages_in_per_sec",          unit: "per second",       engines: kafka,      kind: "rate",  source: "engine",  description: "Messages received by brokers" },
  { number: 30, name: "kafka_bytes_in_per_sec",             unit: "bytes per second", engines: kafka,      kind: "rate",  source: "engine",  description: "Bytes of messages received by brokers" },
  { number: 31, name: "kafka_bytes_out_per_sec",            unit: "bytes per second", engines: kafka,      kind: "rate",  source: "engine",  description: "Bytes of messages sent by brokers" },
  { number: 32, name: "kafka_under_replicated_partitions",  unit: "count",            engines: kafka,      kind: "gauge", source: "engine",  description: "Partitions with fewer in-sync replicas than configured; 0 is healthy" },
  { number: 33, name: "kafka_consumer_lag",                 unit: "count",            engines: kafka,      kind: "gauge", source: "engine",  description: "Messages that consumer groups have not consumed yet, over all groups and partitions" },
];
