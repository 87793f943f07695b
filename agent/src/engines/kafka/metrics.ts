import type { EngineMetrics, MetricsFacet } from "../insight-facets.ts";
import { readExporter } from "./exporter.ts";
import { countClients } from "./front.ts";
import { consumerLag } from "./groups.ts";
import { isTransient } from "./protocol/protocol-error.ts";

const withinMs = 3_000;
const lagReason = "Kafka has no replication lag per member; see kafka_under_replicated_partitions.";

/**
 * Metrics of the exporter, of consumer groups and of the front, without topics of the platform and of the engine. The
 * epoch is the start of the process.
 */
export const metrics: MetricsFacet = {
  async read(instance, signal) {
    const bounded = AbortSignal.any([signal, AbortSignal.timeout(withinMs)]);
    const [figures, connections, lag] = await Promise.all([
      readExporter(instance, bounded),
      countClients(instance, bounded),
      consumerLag(instance, bounded).catch((error: unknown) => {
        if (!isTransient(error)) throw error;
        return undefined;
      }),
    ]);
    return measured(figures, connections, lag);
  },
};

function measured(figures: ReadonlyMap<string, number>, connections: number, lag: number | undefined): EngineMetrics {
  const ofUsers = (name: string) => {
    const own = [...figures].filter(([key]) => key.startsWith(`platform_${name}{`));
    return Math.max((figures.get(`all_${name}`) ?? 0) - own.reduce((sum, [, value]) => sum + value, 0), 0);
  };
  return {
    gauges: {
      connections,
      kafka_under_replicated_partitions: figures.get("UnderReplicatedPartitions") ?? 0,
      ...(lag !== undefined && { kafka_consumer_lag: lag }),
    },
    counters: {
      kafka_messages_in_per_sec: ofUsers("MessagesInPerSec"),
      kafka_bytes_in_per_sec: ofUsers("BytesInPerSec"),
      kafka_bytes_out_per_sec: ofUsers("BytesOutPerSec"),
    },
    ratios: {},
    epoch: String(figures.get("process_start_time_seconds") ?? ""),
    absent: {
      replication_lag_seconds: lagReason,
      replication_lag_bytes: lagReason,
      ...(lag === undefined && { kafka_consumer_lag: "The broker loads its consumer groups." }),
    },
  };
}
