import type { ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPageShell, type PageShell } from "./commands/page-shell.ts";
import { longMs, startWrittenBus, type TopicJson, type WrittenBus } from "./kafka/written-bus.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");

// Only root gives commands other names than those of the host.
describe.skipIf(skip !== undefined || !asRoot)("a Kafka that grows to five brokers", { timeout: longMs }, () => {
  let bus: WrittenBus;
  let shell: PageShell;

  beforeAll(async () => {
    bus = await startWrittenBus(1, { private_listener: true });
    shell = createPageShell(bus.platform);
  }, longMs);
  afterAll(async () => {
    shell?.remove();
    await bus?.remove();
  }, longMs);

  const get = () => bus.services.get(bus.id);

  /** Each partition of the ledger has three replicas in sync, and each of these brokers has some of them. */
  async function expectSpread(brokers: readonly number[]): Promise<void> {
    const isSpread = async () => {
      const { brokers: present, inSync } = await bus.placementOf("ledger");
      return present.join() === brokers.join() && inSync === 3;
    };
    await waitUntil(`brokers ${brokers.join()} have the partitions`, isSpread, {
      withinMs: longMs,
      describe: bus.describe,
    });
    await bus.isComplete(brokers.length);
  }

  it("does not grow to two, which need both for each write", async () => {
    const two = await bus.platform.rest.post<ProblemJson>(bus.path("/nodes"), { role: "replica" });
    expect(expectStatus(two, 422).json.detail).toContain("the loss of either one loses the majority");
  });

  it("has three replicas of its records once it has three brokers", async () => {
    const before = serviceKafka(bus.platform, await bus.open(), { plain: true });
    const producer = before.producer({ retry: { retries: 10 } });
    await producer.connect();
    await producer.send({ topic: "orders", acks: -1, messages: [{ key: "1", value: "before" }] });
    await shell.run("holdfast nodes add bus --count 2 --wait");
    await expectSpread([1, 2, 3]);
    const isRaised = async () => (await bus.placementOf("orders")).inSync === 3;
    await waitUntil("the topic has three replicas", isRaised, { withinMs: longMs, describe: bus.describe });
    await producer.send({ topic: "orders", acks: -1, messages: [{ key: "2", value: "after" }] });
    await producer.disconnect();
    const later = await bus.platform.rest.post<TopicJson>(bus.path("/topics"), { name: "later" });
    expect(expectStatus(later, 201).json).toMatchObject({ replication_factor: 3 });
    const { nodes } = await get();
    killImmediately(bus.engineOf(nodes[0]?.id ?? ""));
    const isRead = async () => {
      const records = await readTopic(serviceKafka(bus.platform, await bus.open()), "orders");
      return records.map(({ value }) => value).join() === "before,after";
    };
    await waitUntil("records are read without the first broker", isRead, { withinMs: longMs });
    await bus.isComplete(3);
  });

  it.each([4, 5])("has %d brokers that share its partitions, with a majority of three", async (count) => {
    await shell.run("holdfast nodes add bus --wait");
    await expectSpread(Array.from({ length: count }, (_, index) => index + 1));
    expect((await get()).quorum).toMatchObject({ healthy: true, members: count, majority: 3 });
    const { bootstrap_servers: all, private_bootstrap_servers: others } = (await bus.open()).connection;
    expect([all, others].map((servers) => servers?.split(",").length)).toEqual([count, count]);
  });

  it("has five at most", async () => {
    const six = await bus.platform.rest.post<ProblemJson>(bus.path("/nodes"), { role: "replica" });
    expect(expectStatus(six, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("serves again, with all records, after two of five are killed together", async () => {
    const { nodes } = await get();
    const leader = bus.leaderIn(await get());
    const other = nodes.find(({ id }) => id !== leader)?.id ?? "";
    for (const id of [leader, other]) killImmediately(bus.engineOf(id));
    await bus.writesContinue();
    await bus.isComplete(5);
    expect((await bus.placementOf("ledger")).inSync).toBe(3);
  });

  it.each([4, 3])("moves the data of a broker that is removed to the other %d", async (count) => {
    const { nodes } = await get();
    // The leader of the quorum, too.
    const leader = bus.leaderIn(await get());
    const leaving = nodes.find(({ id }) => (count === 4 ? id === leader : id !== leader));
    await shell.run(`holdfast nodes remove bus ${leaving?.hostname} --yes --wait`);
    const after = await bus.isComplete(count);
    expect(after.nodes.map(({ id }) => id)).not.toContain(leaving?.id);
    expect(after.quorum).toMatchObject({ healthy: true, members: count, majority: count === 4 ? 3 : 2 });
    const { brokers, inSync } = await bus.placementOf("ledger");
    expect({ brokers: brokers.length, inSync }).toEqual({ brokers: count, inSync: 3 });
  });

  it("has lost no acknowledged record", async () => {
    expect(await bus.lost()).toEqual([]);
    expect(bus.writer.acknowledged).toBeGreaterThan(200);
  });
});
