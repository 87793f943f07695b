import { setTimeout as sleep } from "node:timers/promises";
import type { OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killAtOnce } from "@holdfast/testing/platform/platform-processes.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const skip = await requireRecipes(import.meta.filename, "kafka");
const longMs = 240_000;

interface TopicJson {
  readonly replication_factor: number;
  readonly partition_states: readonly { readonly end_offset: number; readonly in_sync: readonly number[] }[];
}

describe.skipIf(skip !== undefined)("a Kafka of three brokers", () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;
  const acknowledged: string[] = [];
  let sequence = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("bus", { database_type: "kafka", node_count: 3 });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
  }, longMs);
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;
  const engineOf = (nodeId: string) => platform.processes().machines.find(({ id }) => id === nodeId)?.engine;
  const leaderIn = ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "";
  const topic = async () => expectStatus(await platform.rest.get<TopicJson>(path("/topics/orders")), 200).json;

  /** The service once all its nodes are healthy. */
  const complete = (count: number) =>
    waitUntil(
      `${count} nodes are healthy`,
      async () => {
        const service = await services.settled(bus.service.id, "Running", longMs);
        const running = service.nodes.filter(({ status }) => status === "Running").length;
        return running === count && service.health.status === "healthy" && service;
      },
      { withinMs: longMs, everyMs: 250, describe: () => services.describe(bus.service.id) },
    );

  /** Writes with acks=all until the work ends. */
  async function whileWriting(work: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const producer = serviceKafka(platform, bus).producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    const writing = (async () => {
      while (!isOver) {
        const value = `record ${(sequence += 1)}`;
        try {
          await producer.send({ topic: "orders", acks: -1, timeout: 5_000, messages: [{ key: value, value }] });
          acknowledged.push(value);
        } catch {
          // The write was not acknowledged.
        }
        await sleep(10);
      }
    })();
    try {
      await waitUntil("writes are acknowledged", () => acknowledged.length > 20);
      await work();
      const before = acknowledged.length;
      await waitUntil("writes continue", () => acknowledged.length > before + 20, { withinMs: longMs });
    } finally {
      isOver = true;
      await writing;
      await producer.disconnect();
    }
  }

  async function expectNothingLost(groupId: string): Promise<void> {
    const consumer = serviceKafka(platform, bus).consumer({ groupId });
    const missing = new Set(acknowledged);
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
      await consumer.run({
        eachMessage: async ({ message }) => {
          missing.delete(message.value?.toString() ?? "");
        },
      });
      await waitUntil("all acknowledged records are read", () => missing.size === 0, {
        withinMs: 60_000,
        describe: () => Promise.resolve(`missing: ${[...missing].slice(0, 20).join()} of ${acknowledged.length}`),
      });
    } finally {
      await consumer.disconnect();
    }
  }

  const ended = (operationId: string) =>
    waitUntil(
      "the operation has ended",
      async () => {
        const operation = expectStatus(await platform.rest.get<OperationJson>(`/operations/${operationId}`), 200).json;
        return operation.finished_at !== null && operation;
      },
      { withinMs: longMs, everyMs: 200, describe: () => services.describe(bus.service.id) },
    );

  it("has the names of all nodes in its connection, and one name that resolves to all of them", async () => {
    const { nodes, host } = bus.connection;
    const { json } = expectStatus(
      await platform.rest.get<{ bootstrap_servers: string | null }>(path("/connection")),
      200,
    );
    const names = nodes.map(({ hostname }) => `${hostname}:9092`);
    expect(json.bootstrap_servers?.split(",").toSorted()).toEqual(names.toSorted());
    await waitUntil(
      "the name resolves to all nodes",
      async () => (await resolveName(platform.admin.dns_server, host)).length === 3,
    );
    const body = { name: "orders", partitions: 6 };
    const created = expectStatus(await platform.rest.post<TopicJson>(path("/topics"), body), 201).json;
    expect(created).toMatchObject({ partitions: 6, replication_factor: 3 });
  });

  it("loses no acknowledged record when the broker that leads is killed", { timeout: longMs }, async () => {
    await whileWriting(async () => {
      killAtOnce(engineOf(leaderIn(await complete(3))) ?? 0);
      await complete(3);
      await waitUntil("all replicas are in sync", async () =>
        (await topic()).partition_states.every(({ in_sync: inSync }) => inSync.length === 3),
      );
    });
    await expectNothingLost("after-a-kill");
  });

  it("loses no acknowledged record while its brokers restart one by one", { timeout: longMs }, async () => {
    const before = (await complete(3)).nodes.map(({ id }) => engineOf(id));
    await whileWriting(async () => {
      const { json } = expectStatus(await platform.rest.post<ServiceJson>(path("/restart")), 202);
      expect(await ended(json.operation?.id ?? "")).toMatchObject({ status: "completed", error: null });
      await complete(3);
    });
    const after = (await complete(3)).nodes.map(({ id }) => engineOf(id));
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
    await expectNothingLost("after-a-roll");
  });

  it("gets a fourth node, and removes its leader after its partitions moved", { timeout: longMs }, async () => {
    await whileWriting(async () => {
      expectStatus(await platform.rest.post(path("/nodes"), { role: "replica" }), 202);
      await services.settled(bus.service.id, "Running", longMs);
      const four = await complete(4);
      const leader = leaderIn(four);
      expectStatus(await platform.rest.delete(path(`/nodes/${leader}`)), 202);
      await services.settled(bus.service.id, "Running", longMs);
      const three = await complete(3);
      expect(three.nodes.map(({ id }) => id)).not.toContain(leader);
    });
    const { replication_factor: factor, partition_states: states } = await topic();
    expect(factor).toBe(3);
    expect(states.reduce((sum, { end_offset: end }) => sum + Number(end), 0)).toBeGreaterThanOrEqual(
      acknowledged.length,
    );
    await expectNothingLost("after-a-removal");
    const refused = await platform.rest.delete<ProblemJson>(path(`/nodes/${leaderIn(await complete(3))}`));
    expect(expectStatus(refused, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("stops and starts with all its records", { timeout: longMs }, async () => {
    await services.verb(bus.service.id, "stop");
    await services.verb(bus.service.id, "start");
    await complete(3);
    await expectNothingLost("after-a-stop");
  });
});
