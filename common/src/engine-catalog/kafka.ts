import { kafkaMetrics } from "../metrics/kafka-metrics.ts";
import { clamp } from "./clamp.ts";
import type { EngineRow, EngineSizing, PlanMaximum, PlanSize } from "./engine-row.ts";
import { kafkaManaged, kafkaParameters } from "./kafka-parameters.ts";

const mib = 1024 ** 2;
const gib = 1024 ** 3;

const kafkaSizing = {
  parameters: ({ vcpu }) => ({
    "num.io.threads": String(clamp(2 * vcpu, 4, 32)),
    "num.network.threads": String(clamp(vcpu, 2, 16)),
  }),
  maximumOf(name, _values, plan): PlanMaximum | undefined {
    // The heap of the broker contains several copies of a message.
    if (name === "message.max.bytes" || name === "fetch.max.bytes")
      return { value: Math.floor(kafkaHeapBytes(plan) / 8), of: "memory" };
    if (name === "log.cleaner.dedupe.buffer.size") return { value: Math.floor(kafkaHeapBytes(plan) / 4), of: "memory" };
    return undefined;
  },
} satisfies EngineSizing;

function parameterWarning(name: string, value: string, nodeCount: number): string | undefined {
  if (name === "unclean.leader.election.enable" && value === "true")
    return "A replica that lacks acknowledged records can become the leader, which loses them.";
  if (name !== "min.insync.replicas" || nodeCount < 3) return undefined;
  if (value === "1")
    return "A write with acks=all is acknowledged with only one replica in sync, so the loss of one broker can lose it.";
  // Topics have three replicas by default.
  if (Number(value) >= 3)
    return "Topics with three replicas take no writes with acks=all while one broker is down, and brokers do not restart one by one.";
  return undefined;
}

/** Maximum size of a batch of messages, in bytes: no topic's setting exceeds it. */
export function kafkaBatchBytes(plan: PlanSize): number {
  const limit = kafkaParameters.find(({ name }) => name === "message.max.bytes")?.maximum ?? Infinity;
  return Math.min(Math.floor(kafkaHeapBytes(plan) / 8), limit);
}

/** Heap of a broker; the other memory is the page cache, from which consumers read. */
export function kafkaHeapBytes({ memoryBytes }: PlanSize): number {
  return Math.floor(clamp(memoryBytes / 4, 256 * mib, 6 * gib) / mib) * mib;
}

/** Maximum number of client connections of a broker. */
export function kafkaClients({ memoryBytes }: PlanSize): number {
  return Math.round(clamp((memoryBytes / gib) * 500, 250, 8_000));
}

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
  nodeBoundParameters: ["min.insync.replicas"],
  nodeDefaults: (nodeCount) => ({ "min.insync.replicas": nodeCount >= 3 ? "2" : "1" }),
  parameterWarning,
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
