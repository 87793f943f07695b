import type { PageJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic, writeRecords } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
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
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AcknowledgedWriter } from "../faults/acknowledged-writer.ts";

interface TopicJson {
  readonly name: string;
  readonly replication_factor: number;
  readonly partition_states: readonly { readonly replicas: readonly number[]; readonly in_sync: readonly number[] }[];
}

const skip = await requireRecipes(import.meta.filename, "kafka");
const longMs = 900_000;

describe.skipIf(skip !== undefined)("a Kafka of several brokers", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;
  let writer: AcknowledgedWriter;
  const writing = new AbortController();

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", node_count: 3, parameters });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
    writer = await writeRecords(platform, bus, writing.signal);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await writer?.done;
    await platform?.remove();
  });

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;
  const machineOf = (nodeId: string) => platform.processes().machines.find(({ id }) => id === nodeId);
  const leaderIn = ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "";
  const topics = async () =>
    expectStatus(await platform.rest.get<PageJson<"topics", TopicJson>>(path("/topics")), 200).json.topics;

  async function writesContinue(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes continue", () => writer.acknowledged > before + 20, { withinMs: longMs });
  }

  /** The service with this number of healthy members, under its name, with writes. */
  async function isComplete(count: number): Promise<ServiceJson> {
    const isIt = async () => {
      const service = await services.settled(bus.service.id, "Running", longMs);
      const running = service.nodes.filter(({ status }) => status === "Running").length;
      return running === count && service.nodes.length === count && service.health.status === "healthy" && service;
    };
    const describeService = () => services.describe(bus.service.id);
    const service = await waitUntil("all brokers are healthy", isIt, { withinMs: longMs, describe: describeService });
    await waitUntil("the name resolves to all brokers", async () => {
      const addresses = await resolveName(platform.admin.dns_server, bus.connection.host);
      return addresses.length === count;
    });
    await writesContinue();
    return service;
  }

  /** Numbers of the brokers that have replicas of the topic, and the smallest number of in-sync replicas. */
  async function placementOf(name: string): Promise<{ brokers: number[]; inSync: number }> {
    const { json } = expectStatus(await platform.rest.get<TopicJson>(path(`/topics/${name}`)), 200);
    const brokers = [...new Set(json.partition_states.flatMap(({ replicas }) => replicas))].toSorted((a, b) => a - b);
    return { brokers, inSync: Math.min(...json.partition_states.map(({ in_sync: inSync }) => inSync.length)) };
  }

  it("has three replicas of each partition, and names each broker in its connection", async () => {
    await isComplete(3);
    bus = await services.open(bus.service.id);
    expect(bus.connection.bootstrap_servers?.split(",")).toHaveLength(3);
    expect(await topics()).toMatchObject([{ name: "ledger", replication_factor: 3 }]);
    expect(await placementOf("ledger")).toEqual({ brokers: [1, 2, 3], inSync: 3 });
  });

  it("takes writes while its leader is killed", async () => {
    const leader = leaderIn(await services.get(bus.service.id));
    killImmediately(machineOf(leader)?.engine ?? 0);
    await writesContinue();
    await isComplete(3);
  });

  it("takes writes while its brokers restart one by one, for a parameter and another plan", async () => {
    const parameters = { "num.partitions": "2" };
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    const before = platform.processes().machines.map(({ engine }) => engine);
    expectStatus(await platform.rest.post(path("/restart")), 202);
    await isComplete(3);
    const after = platform.processes().machines.map(({ engine }) => engine);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
    expectStatus(await platform.rest.post(path("/resize"), { plan_name: "tier-2" }), 202);
    await isComplete(3);
  });

  it("has a user's new password and rights at all brokers once the call returns", async () => {
    const user = { username: "writer", role: "readwrite" };
    expectStatus(await platform.rest.post(path("/database-users"), user), 201);
    for (let round = 0; round < 3; round += 1) {
      const reset = await platform.rest.post(path("/database-users/writer/reset-password"));
      expectStatus(reset, 200);
      const reveal = await platform.rest.post<{ password: string }>(path("/database-users/writer/reveal-password"));
      const { password } = expectStatus(reveal, 200).json;
      for (const host of bus.connection.nodes.map(({ hostname }) => hostname)) {
        const connection = { ...bus.connection, host };
        const admin = serviceKafka(platform, { connection, password }, { username: "writer" }).admin();
        await admin.connect();
        await admin.fetchTopicOffsets("ledger");
        await admin.disconnect();
      }
    }
    expectStatus(await platform.rest.delete(path("/database-users/writer")), 204);
  });

  it("gets a fourth broker, which gets partitions, and loses its leader after its data moved", async () => {
    expectStatus(await platform.rest.post(path("/nodes"), { role: "replica" }), 202);
    const four = await isComplete(4);
    await waitUntil(
      "the new broker has partitions",
      async () => {
        const { brokers, inSync } = await placementOf("ledger");
        return brokers.join() === "1,2,3,4" && inSync === 3;
      },
      { withinMs: longMs },
    );
    await isComplete(4);
    const leader = leaderIn(four);
    expectStatus(await platform.rest.delete(path(`/nodes/${leader}`)), 202);
    const three = await isComplete(3);
    expect(three.nodes.map(({ id }) => id)).not.toContain(leader);
    const { brokers, inSync } = await placementOf("ledger");
    expect(brokers).toHaveLength(3);
    expect(inSync).toBe(3);
    const two = await platform.rest.delete<ProblemJson>(path(`/nodes/${three.nodes[0]?.id}`));
    expect(expectStatus(two, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("has a listener without TLS in the private network while it is enabled", async () => {
    expect(bus.connection.private_bootstrap_servers).toBeNull();
    expectStatus(await platform.rest.patch(path(), { private_listener: true }), 200);
    await isComplete(3);
    bus = await services.open(bus.service.id);
    expect(bus.connection).toMatchObject({ private_security_protocol: "SASL_PLAINTEXT" });
    const kafka = serviceKafka(platform, bus, { plain: true });
    const admin = kafka.admin();
    await waitUntil("the listener admits clients", async () => {
      await admin.connect();
      return true;
    });
    const { brokers } = await admin.describeCluster();
    expect(brokers.map(({ host, port }) => `${host}:${port}`).toSorted()).toEqual(
      bus.connection.private_bootstrap_servers?.split(",").toSorted(),
    );
    await admin.disconnect();
    // The topic is created by the first write, which its leader refuses until it has the new partition.
    const producer = kafka.producer({ retry: { retries: 10 } });
    await producer.connect();
    await producer.send({ topic: "plain", acks: -1, messages: [{ value: "private" }] });
    await producer.disconnect();
    expect((await readTopic(kafka, "plain")).map(({ value }) => value)).toEqual(["private"]);
    expectStatus(await platform.rest.patch(path(), { private_listener: false }), 200);
    await waitUntil("the listener is gone", () =>
      serviceKafka(platform, bus, { plain: true })
        .admin()
        .connect()
        .then(
          () => false,
          () => true,
        ),
    );
  });

  it("has lost no acknowledged record", async () => {
    writing.abort();
    await writer.done;
    expect(writer.acknowledged).toBeGreaterThan(100);
    expect(await writer.missing()).toEqual([]);
    await services.delete(bus.service.id);
  });
});

describe.skipIf(skip !== undefined)("a Kafka that grows", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const { id } = await services.create("bus", { database_type: "kafka", private_listener: true });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
  }, longMs);
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;

  it("has three replicas of its records once it has three brokers", async () => {
    const producer = serviceKafka(platform, bus, { plain: true }).producer();
    await producer.connect();
    await producer.send({ topic: "orders", acks: -1, messages: [{ key: "1", value: "before" }] });
    const one = await platform.rest.post<ProblemJson>(path("/nodes"), { role: "replica" });
    expect(expectStatus(one, 422).json.detail).toContain("the loss of either one loses the majority");
    expectStatus(await platform.rest.post(path("/nodes"), { role: "replica", count: 2 }), 202);
    await services.settled(bus.service.id, "Running", longMs);
    await waitUntil(
      "the topic has three replicas",
      async () => {
        const { json } = await platform.rest.get<TopicJson>(path("/topics/orders"));
        return json.partition_states.every(({ in_sync: inSync }) => inSync.length === 3);
      },
      { withinMs: longMs, describe: () => services.describe(bus.service.id) },
    );
    await producer.send({ topic: "orders", acks: -1, messages: [{ key: "2", value: "after" }] });
    await producer.disconnect();
    const later = await platform.rest.post<TopicJson>(path("/topics"), { name: "later" });
    expect(expectStatus(later, 201).json).toMatchObject({ replication_factor: 3 });
    const first = platform.processes().machines.find(({ id }) => id === bus.service.nodes[0]?.id);
    killImmediately(first?.engine ?? 0);
    const { service } = await services.open(bus.service.id);
    expect(service.nodes).toHaveLength(3);
    await waitUntil(
      "records are read without the first broker",
      async () => {
        const records = await readTopic(serviceKafka(platform, await services.open(bus.service.id)), "orders");
        return records.map(({ value }) => value).join() === "before,after";
      },
      { withinMs: longMs },
    );
  });
});
