import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { type ReadRecord, readTopic, writeRecords } from "@holdfast/testing/engines/kafka-ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { drilled, noDrillMachines } from "@holdfast/testing/platform/drills.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { CompressionTypes } from "kafkajs";

interface BackupJson {
  readonly id: string;
  readonly status: string;
  readonly kind: string;
}

interface TopicJson {
  readonly partitions: number;
  readonly config: Readonly<Record<string, string>>;
  readonly partition_states: readonly {
    readonly in_sync: readonly number[];
    readonly start_offset: number;
    readonly end_offset: number;
  }[];
}

interface GroupJson {
  readonly offsets: readonly {
    readonly partition: number;
    readonly offset: number;
    readonly end_offset: number;
  }[];
}

const skip = await requireRecipes(import.meta.filename, "kafka");
const longMs = 900_000;
const topic = "orders";

describe.skipIf(skip !== undefined)("backups of a Kafka", { timeout: longMs }, () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;
  let backup: BackupJson;
  let before: readonly ReadRecord[];
  let load: Awaited<ReturnType<typeof startLoad>>;
  let backupAt = 0;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", parameters });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
  }, longMs);
  afterAll(async () => {
    await load?.stop();
    await platform?.remove();
  }, longMs);

  const pathOf = (of: RunningService, rest = "") => `/managed-services/${of.service.id}${rest}`;
  const topicOf = async (of: RunningService) =>
    expectStatus(await platform.rest.get<TopicJson>(pathOf(of, `/topics/${topic}`)), 200).json;
  const groupOf = async (of: RunningService, name: string) =>
    expectStatus(await platform.rest.get<GroupJson>(pathOf(of, `/consumer-groups/${name}`)), 200).json.offsets;
  const offsetsOf = async (of: RunningService) =>
    (await groupOf(of, "billing")).map(({ partition, offset }) => [partition, Number(offset)]);
  const rangesOf = ({ partition_states: states }: TopicJson) =>
    states.map(({ start_offset: start, end_offset: end }) => [start, end]);

  async function takeBackup(): Promise<BackupJson> {
    const { id } = expectStatus(await platform.rest.post<BackupJson>(pathOf(bus, "/backups")), 202).json;
    const check = async () => {
      const found = expectStatus(await platform.rest.get<BackupJson>(pathOf(bus, `/backups/${id}`)), 200).json;
      return ["completed", "failed"].includes(found.status) ? found : undefined;
    };
    const description = () => services.describe(bus.service.id);
    return waitUntil(`the backup ${id} has ended`, check, { withinMs: longMs, everyMs: 100, describe: description });
  }

  async function created(response: { status: number; text: string; json: unknown }): Promise<RunningService> {
    const { id } = expectStatus(response, 202).json as ServiceJson;
    await services.settled(id, "Running", longMs);
    return services.open(id);
  }

  /** Transactions that are committed, aborted and open, deleted records, headers, and compressed batches. */
  async function write(): Promise<() => Promise<void>> {
    const kafka = serviceKafka(platform, bus);
    const admin = kafka.admin();
    await admin.connect();
    const configEntries = [{ name: "retention.ms", value: "-1" }];
    // A topic of a cluster of three; it has one replica here.
    const strict = { topic: "strict", configEntries: [{ name: "min.insync.replicas", value: "2" }] };
    const topics = [{ topic, numPartitions: 3, configEntries }, strict];
    await admin.createTopics({ topics, waitForLeaders: true });
    const producer = kafka.producer();
    await producer.connect();
    const messages = Array.from({ length: 300 }, (_, index) => ({
      partition: index % 2,
      key: `key ${index}`,
      value: `value ${index} ${"x".repeat(index)}`,
      timestamp: String(1_700_000_000_000 + index * 1_000),
      headers: { kind: `header ${index}` },
    }));
    for (let at = 0; at < messages.length; at += 50)
      await producer.send({
        topic,
        acks: -1,
        compression: at === 100 ? CompressionTypes.GZIP : CompressionTypes.None,
        messages: messages.slice(at, at + 50),
      });
    // The broker refuses a transaction until the one before has ended on all partitions.
    const retry = { retries: 20 };
    const mover = kafka.producer({ transactionalId: "mover", maxInFlightRequests: 1, idempotent: true, retry });
    await mover.connect();
    for (const end of ["commit", "abort"] as const) {
      const transaction = await mover.transaction();
      await transaction.send({ topic, messages: [{ partition: 0, key: end, value: end }] });
      await transaction[end]();
    }
    await producer.send({ topic, acks: -1, messages: [{ partition: 0, key: "tail", value: "tail" }] });
    await producer.disconnect();
    // The client knows the leaders of a topic once it has read its offsets.
    await admin.fetchTopicOffsets(topic);
    await admin.deleteTopicRecords({ topic, partitions: [{ partition: 1, offset: "10" }] });
    await admin.setOffsets({
      groupId: "billing",
      topic,
      partitions: [
        { partition: 0, offset: "42" },
        { partition: 1, offset: "11" },
      ],
    });
    await admin.disconnect();
    // Consumers read up to the open transaction.
    before = await readTopic(kafka, topic);
    const transaction = await mover.transaction();
    await transaction.send({ topic, messages: [{ partition: 1, key: "open", value: "open" }] });
    return async () => {
      await transaction.abort();
      await mover.disconnect();
    };
  }

  /** A producer of numbered records, and a consumer that commits its offset after each. */
  async function startLoad() {
    const writing = new AbortController();
    const writer = await writeRecords(platform, bus, writing.signal);
    const consumer = serviceKafka(platform, bus).consumer({ groupId: "followers", maxWaitTimeInMs: 100 });
    await consumer.connect();
    await consumer.subscribe({ topics: ["ledger"], fromBeginning: true });
    let read = 0;
    await consumer.run({ autoCommitThreshold: 1, eachMessage: async () => void (read += 1) });
    await waitUntil("records are written and read", () => Math.min(writer.acknowledged, read) > 50, {
      withinMs: longMs,
    });
    let stopped: Promise<void> | undefined;
    const end = async () => {
      writing.abort();
      await writer.done;
      await consumer.disconnect();
    };
    return { writer, stop: () => (stopped ??= end()) };
  }

  /** A topic of the copy that was written and read during the backup is a beginning of the source's. */
  async function expectLoadOf(copy: RunningService): Promise<void> {
    const [source, copied] = [
      await readTopic(serviceKafka(platform, bus), "ledger"),
      await readTopic(serviceKafka(platform, copy), "ledger"),
    ];
    const at = ({ partition, offset }: ReadRecord) => `${partition} ${offset}`;
    const bySource = new Map(source.map((record) => [at(record), record]));
    expect(copied).toEqual(copied.map((record) => bySource.get(at(record))));
    const ids = new Set(copied.map(({ value }) => Number(value)));
    const early = load.writer.rows.filter(({ acknowledgedAt }) => acknowledgedAt < backupAt);
    expect(early.length).toBeGreaterThan(50);
    expect(early.filter(({ id }) => !ids.has(id))).toEqual([]);
    expect(copied.length).toBeLessThan(source.length);
    const offsets = await groupOf(copy, "followers");
    expect(offsets.reduce((sum, { offset }) => sum + Number(offset), 0)).toBeGreaterThan(0);
    for (const { offset, end_offset: end } of offsets) expect(Number(offset)).toBeLessThanOrEqual(Number(end));
  }

  it("a backup completes while a transaction is open and other topics are written and read", async () => {
    const reader = { username: "reader", role: "readonly" };
    expectStatus(await platform.rest.post(pathOf(bus, "/database-users"), reader), 201);
    const end = await write();
    load = await startLoad();
    backupAt = Date.now();
    backup = await takeBackup();
    const later = load.writer.acknowledged + 10;
    await waitUntil("writes continue", () => load.writer.acknowledged > later, { withinMs: longMs });
    await load.stop();
    expect(backup).toMatchObject({ status: "completed", kind: "snapshot" });
    await end();
    const producer = serviceKafka(platform, bus).producer();
    await producer.connect();
    await producer.send({ topic, acks: -1, messages: [{ key: "later", value: "later" }] });
    await producer.disconnect();
  });

  /** The copy's user `reader` has a new password, reads, and does not write. */
  async function expectReader(copy: RunningService): Promise<void> {
    const passwordAt = async (of: RunningService) => {
      const path = pathOf(of, "/database-users/reader/reveal-password");
      return expectStatus(await platform.rest.post<{ password: string }>(path), 200).json.password;
    };
    const login = { username: "reader", password: await passwordAt(copy) };
    expect(login.password).not.toBe(await passwordAt(bus));
    expect(await readTopic(serviceKafka(platform, copy, login), topic)).toEqual(before);
    const producer = serviceKafka(platform, copy, login).producer({ retry: { retries: 0 } });
    await producer.connect();
    await expect(producer.send({ topic, acks: -1, messages: [{ value: "no" }] })).rejects.toThrow(/not authorized/i);
    await producer.disconnect();
  }

  it("a copy has the records, offsets, times and headers of the source, its groups and its users", async () => {
    const source = rangesOf(await topicOf(bus));
    const body = { target_service_name: "before" };
    const copy = await created(await platform.rest.post(pathOf(bus, `/backups/${backup.id}/restore`), body));
    expect(copy.password).not.toBe(bus.password);
    const records = await readTopic(serviceKafka(platform, copy), topic);
    expect(records).toEqual(before);
    expect(records.length).toBe(300 - 10 + 2);
    await expectReader(copy);
    await expectLoadOf(copy);
    const restored = await topicOf(copy);
    expect(restored).toMatchObject({ partitions: 3, config: { "retention.ms": "-1" } });
    expect(rangesOf(restored).map(([start]) => start)).toEqual(source.map(([start]) => start));
    expect(await offsetsOf(copy)).toEqual([
      [0, 42],
      [1, 11],
    ]);
    // Ids of its producers are new ones, so no record counts as a repetition.
    const producer = serviceKafka(platform, copy).producer({ idempotent: true, maxInFlightRequests: 1 });
    await producer.connect();
    for (const value of ["a", "b", "c"]) await producer.send({ topic, acks: -1, messages: [{ partition: 0, value }] });
    await producer.send({ topic: "strict", acks: -1, messages: [{ value: "a" }] });
    await producer.disconnect();
    const after = await readTopic(serviceKafka(platform, copy), topic);
    expect(after.filter(({ key }) => key === null).map(({ value }) => value)).toEqual(["a", "b", "c"]);
    await services.verb(copy.service.id, "restart");
    expect(await readTopic(serviceKafka(platform, copy), topic)).toEqual(after);
    await services.delete(copy.service.id);
  });

  it("a fork of three brokers replicates its records", async () => {
    const body = { name: "forked", backup_id: backup.id, node_count: 3 };
    const copy = await created(await platform.rest.post(pathOf(bus, "/fork"), body));
    await waitUntil(
      "each partition has three replicas",
      async () => (await topicOf(copy)).partition_states.every(({ in_sync: inSync }) => inSync.length === 3),
      { withinMs: longMs },
    );
    expect(await readTopic(serviceKafka(platform, copy), topic)).toEqual(before);
    await services.delete(copy.service.id);
  });

  it("is restored by the id of a backup and not to a time", async () => {
    const body = { target_service_name: "at-a-time", restore_point: new Date().toISOString() };
    const refused = await platform.rest.post<ProblemJson>(pathOf(bus, "/backups/restore"), body);
    expect(expectStatus(refused, 422).json).toMatchObject({
      code: "restore_point_unavailable",
      detail: expect.stringContaining(backup.id),
    });
  });

  it("a drill reads all records", async () => {
    const { id } = expectStatus(await platform.rest.post<{ id: string }>(pathOf(bus, "/backups/drill")), 202).json;
    const drill = await drilled(platform, bus.service.id, id);
    expect(drill).toMatchObject({ status: "completed", error: null });
    expect(drill.checks.map(({ name, of, passed }) => [name, of, passed])).toEqual([
      ["restored", "backup", true],
      ["contents", "backup", true],
    ]);
    await noDrillMachines(platform);
  });
});
