import { rm } from "node:fs/promises";
import { join } from "node:path";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { fillDisk } from "@holdfast/testing/machines/fill-disk.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";
import type { Admin } from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const skip = await requireRecipes(import.meta.filename, "kafka");
const mib = 1024 ** 2;
const longMs = 600_000;

// Only root gives each machine a separate disk that can be full.
describe.skipIf(skip !== undefined || !asRoot)("a Kafka whose disk is full", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;
  const acknowledged: string[] = [];

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", parameters });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
    await asAdmin((admin) =>
      admin.createTopics({ topics: ["orders", "old"].map((topic) => ({ topic })), waitForLeaders: true }),
    );
    await send("first");
  }, longMs);
  afterAll(() => platform?.remove(), longMs);

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;
  const machine = () => platform.processes().machines.find(({ id }) => id === bus.service.nodes[0]?.id);
  const data = () => pathInside(machine()?.agent, "/data");
  const wait = { withinMs: longMs, describe: () => services.describe(bus.service.id) };
  const health = async () => (await services.get(bus.service.id)).health;
  const reasonOf = async (check: string) => (await health()).checks.find(({ name }) => name === check)?.reason ?? "";

  async function asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    const admin = serviceKafka(platform, bus).admin();
    try {
      await admin.connect();
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async function send(value: string): Promise<void> {
    const producer = serviceKafka(platform, bus).producer({ retry: { retries: 0 } });
    try {
      await producer.connect();
      await producer.send({ topic: "orders", acks: -1, timeout: 5_000, messages: [{ value }] });
      acknowledged.push(value);
    } finally {
      await producer.disconnect();
    }
  }

  const sends = (value: string) => waitUntil(`${value} is written`, () => send(value).then(() => true), wait);
  const isRefused = () =>
    waitUntil(
      "a write is refused for its rights",
      () =>
        send("refused").then(
          () => false,
          (error: Error) => /not authorized/i.test(error.message),
        ),
      wait,
    );
  const read = async () => (await readTopic(serviceKafka(platform, bus), "orders")).map(({ value }) => value);
  async function expectComplete(): Promise<void> {
    const values = await read();
    expect(acknowledged.filter((value) => !values.includes(value))).toEqual([]);
  }

  it("refuses writes and new topics of users at 95%, while reads and deletions continue", async () => {
    await fillDisk(data(), 30 * mib);
    await isRefused();
    await waitUntil("the storage is reported", async () => /9\d% full/.test(await reasonOf("storage")), wait);
    await expect(asAdmin((admin) => admin.createTopics({ topics: [{ topic: "new" }] }))).rejects.toThrow();
    await expectComplete();
    expectStatus(await platform.rest.delete(path("/topics/old")), 204);
    const { events } = expectStatus(
      await platform.rest.get<{ events: readonly unknown[] }>(path("/events?type=service.writes_blocked")),
      200,
    ).json;
    expect(events).toHaveLength(1);
  });

  it("takes writes while they are enabled, and once the disk has space", async () => {
    expectStatus(await platform.rest.post(path("/enable-writes")), 202);
    await sends("enabled");
    await rm(join(data(), "filler"));
    await sends("with space");
    await waitUntil("the service is healthy", async () => (await health()).status === "healthy", wait);
    expectStatus(await platform.rest.post(path("/enable-writes")), 409);
    await expectComplete();
  });
});
