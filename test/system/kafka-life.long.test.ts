import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { runPerformanceTools, runPythonKafka } from "@holdfast/testing/engines/kafka-programs.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");

describe.skipIf(skip !== undefined)("a Kafka through changes and kills", () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;
  let sent = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    bus = await services.createRunning("bus", { database_type: "kafka" });
    const admin = serviceKafka(platform, bus).admin();
    await admin.connect();
    await admin.createTopics({ topics: [{ topic: "orders", numPartitions: 2 }], waitForLeaders: true });
    await admin.disconnect();
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;
  const machine = () => platform.processes().machines.find(({ id }) => id === bus.service.nodes[0]?.id);

  /** Writes one record, and compares the number of records with all that were acknowledged. */
  async function expectComplete(): Promise<void> {
    const kafka = serviceKafka(platform, bus);
    const [producer, admin] = [kafka.producer(), kafka.admin()];
    try {
      await Promise.all([producer.connect(), admin.connect()]);
      await producer.send({ topic: "orders", acks: -1, messages: [{ key: String(sent), value: "x" }] });
      sent += 1;
      const ends = await admin.fetchTopicOffsets("orders");
      expect(ends.reduce((sum, { high }) => sum + Number(high), 0)).toBe(sent);
    } finally {
      await Promise.all([producer.disconnect(), admin.disconnect()]);
    }
  }

  /** True if a client can connect and read the topic. */
  async function serves(): Promise<boolean> {
    const admin = serviceKafka(platform, bus).admin();
    try {
      await admin.connect();
      await admin.fetchTopicOffsets("orders");
      return true;
    } catch {
      return false;
    } finally {
      await admin.disconnect();
    }
  }

  it.skipIf(!asRoot)(
    "serves librdkafka's client for Python, with each compression and with transactions",
    async () => {
      const codecs = ["gzip", "lz4", "none", "snappy", "zstd"];
      expect(await runPythonKafka(platform, bus)).toEqual({
        written: codecs.length,
        aborted: 1,
        committed: 1,
        read: [...codecs, "committed"].toSorted(),
        read_later: ["later"],
        uncommitted: [...codecs, "aborted", "committed", "later"].toSorted(),
        refused: "TOPIC_AUTHORIZATION_FAILED",
        topics: ["orders", "python"],
      });
      expectStatus(await platform.rest.delete(path("/topics/python")), 204);
    },
    300_000,
  );

  it.skipIf(!asRoot)(
    "serves Kafka's own performance tools",
    async () => {
      const records = 50_000;
      const measured = await runPerformanceTools(platform, bus, "measured", records);
      expect(measured.produced).toBe(records);
      expect(measured.consumed).toBeGreaterThanOrEqual(records);
      expectStatus(await platform.rest.delete(path("/topics/measured")), 204);
    },
    300_000,
  );

  it("serves while its agent and the controllers are killed, and is managed again afterwards", async () => {
    await expectComplete();
    const broker = machine()?.engine;
    killImmediately(machine()?.agent ?? 0);
    for (const pid of platform.processes().controllers) killImmediately(pid);
    await expectComplete();
    // The stored health is healthy all the time.
    await waitUntil("a new agent is connected", async () => (await platform.rest.get(path("/topics"))).status === 200, {
      withinMs: 120_000,
    });
    expect(machine()?.engine).toBe(broker);
    expectStatus(await platform.rest.post(path("/topics"), { name: "later" }), 201);
    await expectComplete();
  });

  it("retains its records when its broker is killed", async () => {
    const broker = machine()?.engine;
    killImmediately(broker ?? 0);
    await waitUntil("another broker process runs", () => {
      const current = machine()?.engine;
      return current !== undefined && current !== broker;
    });
    await waitUntil("the broker serves", serves);
    await services.settled(bus.service.id, "Running");
    await expectComplete();
  });

  it("retains its records over a stop and a start, and while its broker is killed during a restart", async () => {
    await services.verb(bus.service.id, "stop");
    await services.verb(bus.service.id, "start");
    await expectComplete();
    expectStatus(await platform.rest.post(path("/restart")), 202);
    killImmediately(machine()?.engine ?? 0);
    await services.settled(bus.service.id, "Running");
    await expectComplete();
  });

  it("retains its records over more storage and another plan", async () => {
    expectStatus(await platform.rest.post(path("/storage/expand"), { storage_size_gb: 2 }), 202);
    await services.settled(bus.service.id, "Running");
    await expectComplete();
    expectStatus(await platform.rest.post(path("/resize"), { plan_name: "tier-2" }), 202);
    await services.settled(bus.service.id, "Running");
    await expectComplete();
    const { json } = await platform.rest.get<{ parameters: Record<string, { value: string }> }>(path("/configuration"));
    expect(Number(json.parameters["num.io.threads"]?.value)).toBeGreaterThanOrEqual(4);
  });
});
