import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { writeRecords } from "@holdfast/testing/engines/kafka-ledger.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

/** Limit of any step: three JVMs start beside other tests. */
export const longMs = 900_000;

export interface TopicJson {
  readonly name: string;
  readonly replication_factor: number;
  readonly partition_states: readonly { readonly replicas: readonly number[]; readonly in_sync: readonly number[] }[];
}

/** A Kafka of these brokers, with a client that writes numbered records with acks=all to the topic `ledger`. */
export async function startWrittenBus(brokers: number, body: Record<string, unknown> = {}) {
  const platform = await startPlatform();
  try {
    const services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const request = { database_type: "kafka", node_count: brokers, parameters, ...body };
    const { id } = await services.create("bus", request);
    await services.settled(id, "Running", longMs);
    return await writtenBus(platform, services, await services.open(id));
  } catch (error) {
    await platform.remove();
    throw error;
  }
}

export type WrittenBus = Awaited<ReturnType<typeof startWrittenBus>>;

async function writtenBus(platform: Platform, services: Services, opened: RunningService) {
  const { id } = opened.service;
  const writing = new AbortController();
  const writer = await writeRecords(platform, opened, writing.signal);

  const path = (rest = "") => `/managed-services/${id}${rest}`;
  const describe = () => services.describe(id);
  const machineOf = (nodeId: string) => platform.processes().machines.find((machine) => machine.id === nodeId);
  const engineOf = (nodeId: string) => machineOf(nodeId)?.engine ?? 0;

  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", () => writer.acknowledged > before + 20, { withinMs: longMs, describe });
  }

  return {
    platform,
    services,
    id,
    writer,
    path,
    describe,
    machineOf,
    engineOf,
    writesContinue,
    open: () => services.open(id),
    leaderIn: ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "",
    killControllers() {
      for (const pid of platform.processes().controllers) killImmediately(pid);
    },

    /** The service with this number of healthy members, under its name, with writes. */
    async isComplete(count: number): Promise<ServiceJson> {
      const isIt = async () => {
        const service = await services.settled(id, "Running", longMs);
        const running = service.nodes.filter(({ status }) => status === "Running").length;
        return running === count && service.nodes.length === count && service.health.status === "healthy" && service;
      };
      const service = await waitUntil("all brokers are healthy", isIt, { withinMs: longMs, describe });
      await waitUntil("the name resolves to all brokers", async () => {
        const addresses = await resolveName(platform.admin.dns_server, opened.connection.host);
        return addresses.length === count;
      });
      await writesContinue();
      return service;
    },

    /** Numbers of the brokers that have replicas of the topic, and the smallest number of in-sync replicas. */
    async placementOf(name: string): Promise<{ brokers: number[]; inSync: number }> {
      const { json } = expectStatus(await platform.rest.get<TopicJson>(path(`/topics/${name}`)), 200);
      const brokers = [...new Set(json.partition_states.flatMap(({ replicas }) => replicas))].toSorted((a, b) => a - b);
      return { brokers, inSync: Math.min(...json.partition_states.map(({ in_sync: inSync }) => inSync.length)) };
    },

    /** The smallest number of in-sync replicas of a partition of the ledger that a client saw during the work. */
    async leastInSync(work: () => Promise<unknown>): Promise<number> {
      let [isOver, least, samples] = [false, Number.POSITIVE_INFINITY, 0];
      const sample = async () => {
        const admin = serviceKafka(platform, opened).admin();
        try {
          await admin.connect();
          const { topics } = await admin.fetchTopicMetadata({ topics: ["ledger"] });
          least = Math.min(least, ...topics.flatMap(({ partitions }) => partitions.map(({ isr }) => isr.length)));
          samples += 1;
        } finally {
          await admin.disconnect();
        }
      };
      // A broker that restarts does not respond.
      const sampling = waitUntil("the work is over", () => isOver || sample().then(() => isOver), {
        withinMs: longMs,
      });
      try {
        await work();
      } finally {
        isOver = true;
        await sampling;
      }
      if (samples < 5) throw new Error(`the in-sync replicas were read only ${samples} times`);
      return least;
    },

    /** Ends the client. Resolves with the acknowledged records that are lost. */
    async lost(): Promise<number[]> {
      writing.abort();
      await writer.done;
      return writer.missing();
    },
    async remove(): Promise<void> {
      writing.abort();
      await writer.done;
      await platform.remove();
    },
  };
}
