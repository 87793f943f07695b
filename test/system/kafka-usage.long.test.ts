import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { runKafkaCommand } from "@holdfast/testing/engines/kafka-programs.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Admin } from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const longMs = 600_000;
const skip = await requireRecipes(import.meta.filename, "kafka");

// Situations that users of other managed Kafkas reported.
describe.skipIf(skip !== undefined)("a Kafka as its users use it", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", parameters });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;
  const createTopic = (body: object) => platform.rest.post<ProblemJson>(path("/topics"), body);

  async function asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = serviceKafka(platform, bus).admin();
    await admin.connect();
    try {
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async function send(topic: string, value: string): Promise<void> {
    const producer = serviceKafka(platform, bus).producer();
    await producer.connect();
    try {
      await producer.send({ topic, acks: -1, messages: [{ key: value.slice(0, 8), value }] });
    } finally {
      await producer.disconnect();
    }
  }

  it("takes writes to a topic that names more in-sync replicas than it has", async () => {
    const config = { "min.insync.replicas": "2" };
    expectStatus(await createTopic({ name: "strict", config }), 201);
    await send("strict", "one");
  });

  it("names what is wrong with a topic", async () => {
    expectStatus(await createTopic({ name: "orders.eu" }), 201);
    const collision = expectStatus(await createTopic({ name: "orders_eu" }), 422).json;
    expect(collision.detail).toContain("orders.eu");
    for (const config of [{ "retention.mss": "1" }, { "retention.ms": "-2" }, { "cleanup.policy": "none" }]) {
      const [name = ""] = Object.keys(config);
      expect(expectStatus(await createTopic({ name: "wrong", config }), 422).json.detail).toContain(name);
    }
    const factor = await platform.rest.patch<ProblemJson>(path("/topics/strict"), { replication_factor: 3 });
    expect(expectStatus(factor, 400).text).toContain("replication_factor");
    const more = expectStatus(await createTopic({ name: "wrong", replication_factor: 3 }), 400);
    expect(more.text).toContain("must be at most 1, the number of nodes");
  });

  it("deletes a topic that a client creates again by its writes", async () => {
    const stopping = new AbortController();
    let sent = 0;
    const writing = (async () => {
      const producer = serviceKafka(platform, bus).producer();
      await producer.connect();
      while (!stopping.signal.aborted)
        await producer.send({ topic: "again", acks: -1, messages: [{ value: "x" }] }).then(
          () => (sent += 1),
          () => undefined,
        );
      await producer.disconnect();
    })();
    try {
      for (let round = 0; round < 5; round += 1) {
        const before = sent;
        await waitUntil("the topic is written", () => sent > before);
        expectStatus(await platform.rest.delete(path("/topics/again")), 204);
      }
    } finally {
      stopping.abort();
      await writing;
    }
  });

  it("creates a topic again that was deleted the moment before, without its records", async () => {
    for (let round = 0; round < 4; round += 1) {
      expectStatus(await createTopic({ name: "daily", partitions: 3 }), 201);
      await send("daily", String(round));
      const values = (await readTopic(serviceKafka(platform, bus), "daily")).map(({ value }) => value);
      expect(values).toEqual([String(round)]);
      expectStatus(await platform.rest.delete(path("/topics/daily")), 204);
    }
  });

  it("has groups of any name", async () => {
    const groupId = "team/a: über 100% ?";
    const one = path(`/consumer-groups/${encodeURIComponent(groupId)}`);
    await asAdmin((admin) =>
      admin.setOffsets({ groupId, topic: "strict", partitions: [{ partition: 0, offset: "0" }] }),
    );
    expect(expectStatus(await platform.rest.get(one), 200).json).toMatchObject({ name: groupId, lag: 1 });
    const reset = await platform.rest.post(`${one}/offsets`, { topic: "strict", to: "latest" });
    expect(expectStatus(reset, 200).json).toMatchObject({ lag: 0 });
    expectStatus(await platform.rest.delete(one), 204);
    expectStatus(await platform.rest.get(one), 404);
  });

  it("has topics of schema registries and connectors, and messages of the size that a topic permits", async () => {
    const config = { "cleanup.policy": "compact", "max.message.bytes": "8388608" };
    expectStatus(await createTopic({ name: "_schemas", partitions: 1, config }), 201);
    const large = "x".repeat(4 << 20);
    await send("_schemas", large);
    const [record] = await readTopic(serviceKafka(platform, bus), "_schemas");
    expect(record?.value === large).toBe(true);
    await expect(send("strict", large)).rejects.toThrow(/larger than the max/i);
    await expect(
      asAdmin((admin) => admin.createTopics({ topics: [{ topic: "__debezium-heartbeat.a" }] })),
    ).rejects.toThrow();
  });

  it.skipIf(!asRoot)("is administered by Kafka's own commands, but for what belongs to the platform", async () => {
    const run = (name: string, ...args: string[]) => runKafkaCommand(platform, bus, name, args);
    const topics = "org.apache.kafka.tools.TopicCommand";
    await run(topics, "--create", "--topic", "tools", "--partitions", "2");
    expect((await run(topics, "--list")).split("\n")).toContain("tools");
    expect(await run(topics, "--list")).not.toContain("__consumer_offsets");
    await run(topics, "--alter", "--topic", "tools", "--partitions", "3");
    const config = ["--entity-type", "topics", "--entity-name", "tools"];
    await run("kafka.admin.ConfigCommand", "--alter", ...config, "--add-config", "retention.ms=1000000");
    expect(await run(topics, "--describe", "--topic", "tools")).toMatch(/PartitionCount: 3.*retention.ms=1000000/s);
    await asAdmin((admin) =>
      admin.setOffsets({ groupId: "tools", topic: "strict", partitions: [{ partition: 0, offset: "0" }] }),
    );
    // By default the command waits for five seconds, in which it also has to load its classes.
    const ofGroups = (...args: string[]) =>
      run("org.apache.kafka.tools.consumer.group.ConsumerGroupCommand", "--timeout", "120000", ...args);
    expect(await ofGroups("--describe", "--group", "tools")).toMatch(/tools +strict +0 +0 +1 +1/);
    const reset = ["--reset-offsets", "--group", "tools", "--topic", "strict", "--to-latest", "--execute"];
    expect(await ofGroups(...reset)).toMatch(/strict +0 +1/);
    await ofGroups("--delete", "--group", "tools");
    const quota = ["--alter", "--entity-type", "users", "--entity-name", "app_user", "--add-config"];
    await expect(run("kafka.admin.ConfigCommand", ...quota, "producer_byte_rate=1")).rejects.toThrow();
  });
});
