import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { longMs, startWrittenBus, type TopicJson, type WrittenBus } from "./kafka/written-bus.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");

describe.skipIf(skip !== undefined)("a Kafka of several brokers", { timeout: longMs }, () => {
  let bus: WrittenBus;

  beforeAll(async () => {
    bus = await startWrittenBus(3);
  }, longMs);
  afterAll(() => bus?.remove());

  const topics = async () =>
    expectStatus(await bus.platform.rest.get<PageJson<"topics", TopicJson>>(bus.path("/topics")), 200).json.topics;

  it("has three replicas of each partition, and names each broker in its connection", async () => {
    await bus.isComplete(3);
    const { connection } = await bus.open();
    expect(connection.bootstrap_servers?.split(",")).toHaveLength(3);
    expect(await topics()).toMatchObject([{ name: "ledger", replication_factor: 3 }]);
    expect(await bus.placementOf("ledger")).toEqual({ brokers: [1, 2, 3], inSync: 3 });
  });

  it("takes writes while its leader is killed", async () => {
    const leader = bus.leaderIn(await bus.services.get(bus.id));
    killImmediately(bus.engineOf(leader));
    await bus.writesContinue();
    await bus.isComplete(3);
  });

  it("takes writes while its brokers restart one by one, for a parameter and another plan", async () => {
    const { platform } = bus;
    const parameters = { "num.partitions": "2" };
    expectStatus(await platform.rest.patch(bus.path("/configuration"), { parameters }), 200);
    const before = platform.processes().machines.map(({ engine }) => engine);
    expectStatus(await platform.rest.post(bus.path("/restart")), 202);
    await bus.isComplete(3);
    const after = platform.processes().machines.map(({ engine }) => engine);
    expect(after.filter((pid) => before.includes(pid))).toEqual([]);
    expectStatus(await platform.rest.post(bus.path("/resize"), { plan_name: "tier-2" }), 202);
    await bus.isComplete(3);
  });

  it("has a user's new password and rights at all brokers once the call returns", async () => {
    const { platform } = bus;
    const { connection: all } = await bus.open();
    const user = { username: "writer", role: "readwrite" };
    expectStatus(await platform.rest.post(bus.path("/database-users"), user), 201);
    for (let round = 0; round < 3; round += 1) {
      const reset = await platform.rest.post(bus.path("/database-users/writer/reset-password"));
      expectStatus(reset, 200);
      const reveal = await platform.rest.post<{ password: string }>(bus.path("/database-users/writer/reveal-password"));
      const { password } = expectStatus(reveal, 200).json;
      for (const host of all.nodes.map(({ hostname }) => hostname)) {
        const connection = { ...all, host };
        const admin = serviceKafka(platform, { connection, password }, { username: "writer" }).admin();
        await admin.connect();
        await admin.fetchTopicOffsets("ledger");
        await admin.disconnect();
      }
    }
    expectStatus(await platform.rest.delete(bus.path("/database-users/writer")), 204);
  });

  it("gets a fourth broker, which gets partitions, and loses its leader after its data moved", async () => {
    const { platform } = bus;
    expectStatus(await platform.rest.post(bus.path("/nodes"), { role: "replica" }), 202);
    const four = await bus.isComplete(4);
    await waitUntil(
      "the new broker has partitions",
      async () => {
        const { brokers, inSync } = await bus.placementOf("ledger");
        return brokers.join() === "1,2,3,4" && inSync === 3;
      },
      { withinMs: longMs },
    );
    await bus.isComplete(4);
    const leader = bus.leaderIn(four);
    expectStatus(await platform.rest.delete(bus.path(`/nodes/${leader}`)), 202);
    const three = await bus.isComplete(3);
    expect(three.nodes.map(({ id }) => id)).not.toContain(leader);
    const { brokers, inSync } = await bus.placementOf("ledger");
    expect(brokers).toHaveLength(3);
    expect(inSync).toBe(3);
    const two = await platform.rest.delete<ProblemJson>(bus.path(`/nodes/${three.nodes[0]?.id}`));
    expect(expectStatus(two, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("has a listener without TLS in the private network while it is enabled", async () => {
    const { platform } = bus;
    expect((await bus.open()).connection.private_bootstrap_servers).toBeNull();
    expectStatus(await platform.rest.patch(bus.path(), { private_listener: true }), 200);
    await bus.isComplete(3);
    const service = await bus.open();
    expect(service.connection).toMatchObject({ private_security_protocol: "SASL_PLAINTEXT" });
    const kafka = serviceKafka(platform, service, { plain: true });
    const admin = kafka.admin();
    await waitUntil("the listener admits clients", async () => {
      await admin.connect();
      return true;
    });
    const { brokers } = await admin.describeCluster();
    expect(brokers.map(({ host, port }) => `${host}:${port}`).toSorted()).toEqual(
      service.connection.private_bootstrap_servers?.split(",").toSorted(),
    );
    await admin.disconnect();
    // The topic is created by the first write, which its leader refuses until it has the new partition.
    const producer = kafka.producer({ retry: { retries: 10 } });
    await producer.connect();
    await producer.send({ topic: "plain", acks: -1, messages: [{ value: "private" }] });
    await producer.disconnect();
    expect((await readTopic(kafka, "plain")).map(({ value }) => value)).toEqual(["private"]);
    expectStatus(await platform.rest.patch(bus.path(), { private_listener: false }), 200);
    await waitUntil("the listener is gone", () =>
      serviceKafka(platform, service, { plain: true })
        .admin()
        .connect()
        .then(
          () => false,
          () => true,
        ),
    );
  });

  it("has lost no acknowledged record", async () => {
    expect(await bus.lost()).toEqual([]);
    expect(bus.writer.acknowledged).toBeGreaterThan(100);
    await bus.services.delete(bus.id);
  });
});
