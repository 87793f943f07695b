import { kafkaMetrics } from "../metrics/kafka-metrics.ts";
import type { EngineRow } from "./engine-row.ts";
import { kafkaManaged, kafkaParameters } from "./kafka-parameters.ts";
import { kafkaSizing } from "./kafka-sizing.ts";

/** Port of the private listener. Brokers advertise it whether or not it is enabled. */
export const kafkaPrivatePort = 9095;

export const kafka: EngineRow = {
  title: "Kafka",
  port: 9092,
  versions: ["3.9"],
  defaultVersion: "3.9",
  topology: "peers",
  metrics: kafkaMetrics,
  parameters: kafkaParameters,
  managedParameters: kafkaManaged,
  sizing: kafkaSizing,
  privateListener: { port: kafkaPrivatePort },
  extensions: [],
  hasDatabases: false,
  hasTopics: true,
  hasQueues: false,
  hasQueryStatistics: false,
  hasWarmPool: false,
  hasPreparedDisks: false,
  upgradesInPlace: true,
  backups: { kind: "snapshot", restorePoints: "snapshots", byIdOnly: true, increments: false, fork: true },
};
