import { type Admin, ConfigResourceTypes } from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { readTopic } from "@holdfast/testing/engines/kafka-ledger.ts";
import { runKcat } from "@holdfast/testing/engines/kafka-programs.ts";
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

interface MetricsJson {
  readonly series: readonly { readonly metric: string; readonly points: readonly unknown[] }[];
}

interface KafkaConnection {
  readonly uri: string;
  readonly database: string;
  readonly bootstrap_servers: string | null;
  readonly security_protocol: string | null;
  readonly sasl_mechanisms: readonly string[];
}

interface TopicJson {
  readonly name: string;
  readonly config: Readonly<Record<string, string>>;
  readonly partition_states: readonly { readonly end_offset: number }[];
}

interface GroupJson {
  readonly name: string;
  readonly state: string;
  readonly lag: number;
}

const skip = await requireRecipes(import.meta.filename, "kafka");
/** A consumer ends only once the broker has answered its last fetch. */
const maxWaitTimeInMs = 100;

describe.skipIf(skip !== undefined)("a managed Kafka", () => {
  let platform: Platform;
  let services: Services;
  let bus: RunningService;

  beforeAll(async () => {
    platform = await startPlatform();
    services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    bus = await services.createRunning("bus", { database_type: "kafka", parameters });
  });
  afterAll(() => platform?.remove());

  const path = (rest = "") => `/managed-services/${bus.service.id}${rest}`;

  const clientOf = (login = {}) => serviceKafka(platform, bus, login);

  async function asAdmin<T>(work: (admin: Admin) => Promise<T>, login = {}): Promise<T> {
    const admin = clientOf(login).admin();
    try {
      await admin.connect();
      return await work(admin);
    } finally {
      await admin.disconnect();
    }
  }

  async function send(values: readonly string[], login = {}): Promise<void> {
    const producer = clientOf(login).producer();
    try {
      await producer.connect();
      await producer.send({ topic: "orders", acks: -1, messages: values.map((value) => ({ key: value, value })) });
    } finally {
      await producer.disconnect();
    }
  }

  /** All values of the topic, in a new consumer group. */
  async function receive(count: number, groupId: string, login = {}): Promise<string[]> {
    const consumer = clientOf(login).consumer({ groupId, maxWaitTimeInMs });
    const values: string[] = [];
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: ["orders"], fromBeginning: true });
      await new Promise<void>((resolve, reject) => {
        // While the first group's topic is being created, the client starts again by itself.
        consumer.on("consumer.crash", ({ payload }) => (payload.restart ? undefined : reject(payload.error)));
        const eachMessage = async ({ message }: { message: { value: Buffer | null } }) => {
          values.push(message.value?.toString() ?? "");
          if (values.length === count) resolve();
        };
        consumer.run({ eachMessage }).catch(reject);
      });
    } finally {
      await consumer.disconnect();
    }
    return values.toSorted();
  }

  const reveal = async (user: string) =>
    expectStatus(await platform.rest.post<{ password: string }>(path(`/database-users/${user}/reveal-password`)), 200)
      .json.password;

  it("has the settings of its clients in its connection", async () => {
    const { host } = bus.connection;
    const { json } = expectStatus(await platform.rest.get<KafkaConnection>(path("/connection")), 200);
    const [node] = bus.connection.nodes;
    expect(json).toMatchObject({
      uri: `${host}:9092`,
      bootstrap_servers: `${node?.hostname}:9092`,
      security_protocol: "SASL_SSL",
      sasl_mechanisms: ["SCRAM-SHA-256", "SCRAM-SHA-512"],
    });
  });

  it("is written and read by a client that verifies the names of the service and of the broker", async () => {
    await asAdmin((admin) =>
      admin.createTopics({ topics: [{ topic: "orders", numPartitions: 3 }], waitForLeaders: true }),
    );
    await send(["one", "two", "three"]);
    expect(await receive(3, "readers")).toEqual(["one", "three", "two"]);
    const listed = await asAdmin((admin) => admin.listTopics());
    expect(listed).toEqual(["orders"]);
  });

  it.skipIf(!asRoot)("is read and written by kcat, by name", async () => {
    const kcat = (args: readonly string[], input?: string) => runKcat(platform, bus, args, input);
    const consume = (topic: string) => kcat(["-C", "-t", topic, "-o", "beginning", "-e", "-q"]);
    expect((await consume("orders")).trim().split("\n").toSorted()).toEqual(["one", "three", "two"]);
    // The topic is created by the first write.
    await kcat(["-P", "-t", "compressed", "-z", "zstd", "-l", "/mnt/input"], "compressed\n");
    expect(await consume("compressed")).toBe("compressed\n");
    expectStatus(await platform.rest.delete(path("/topics/compressed")), 204);
  });

  it("shows consumers the records of committed transactions alone", async () => {
    await asAdmin((admin) => admin.createTopics({ topics: [{ topic: "moves" }], waitForLeaders: true }));
    // The broker refuses a transaction until the one before has ended on all partitions.
    const retry = { retries: 20 };
    const producer = clientOf().producer({ transactionalId: "mover", maxInFlightRequests: 1, idempotent: true, retry });
    await producer.connect();
    for (const end of ["abort", "commit"] as const) {
      const transaction = await producer.transaction();
      await transaction.send({ topic: "moves", messages: [{ value: end }] });
      await transaction[end]();
    }
    await producer.disconnect();
    expect((await readTopic(clientOf(), "moves")).map(({ value }) => value)).toEqual(["commit"]);
    expectStatus(await platform.rest.delete(path("/topics/moves")), 204);
  });

  it("has users with the rights of their roles, and passwords that can be revealed and reset", async () => {
    for (const [username, role] of Object.entries({ reader: "readonly", writer: "readwrite" }))
      expectStatus(await platform.rest.post(path("/database-users"), { username, role }), 201);
    const writer = { username: "writer", password: await reveal("writer") };
    const reader = { username: "reader", password: await reveal("reader") };
    await send(["four"], writer);
    expect(await receive(4, "reader-group", reader)).toContain("four");
    await expect(send(["five"], reader)).rejects.toThrow(/not authorized/i);
    const topics = [{ topic: "other" }];
    await expect(asAdmin((admin) => admin.createTopics({ topics }), writer)).rejects.toThrow();
    expectStatus(await platform.rest.post(path("/database-users/writer/reset-password")), 200);
    await expect(send(["five"], writer)).rejects.toThrow(/invalid credentials/);
    await send(["five"], { username: "writer", password: await reveal("writer") });
    expectStatus(await platform.rest.delete(path("/database-users/reader")), 204);
    await expect(receive(1, "late", reader)).rejects.toThrow(/invalid credentials/);
    const { json } = await platform.rest.get<PageJson<"users", { username: string }>>(path("/database-users"));
    expect(json.users.map(({ username }) => username)).toEqual(["app_user", "writer"]);
  });

  it("has topics that are created, changed and deleted by the API", async () => {
    const body = { name: "state", partitions: 2, config: { "cleanup.policy": "compact" } };
    const created = expectStatus(await platform.rest.post<TopicJson>(path("/topics"), body), 201).json;
    expect(created).toMatchObject({ name: "state", partitions: 2, replication_factor: 1, config: body.config });
    expectStatus(await platform.rest.post(path("/topics"), { ...body, partitions: 3 }), 409);
    for (const name of ["holdfast.mine", "__mine"])
      expectStatus(await platform.rest.post(path("/topics"), { name }), 422);
    expectStatus(await platform.rest.post(path("/topics"), { name: "huge", partitions: 10_000 }), 409);
    const change = { partitions: 4, config: { "cleanup.policy": null, "retention.ms": "3600000" } };
    const changed = expectStatus(await platform.rest.patch<TopicJson>(path("/topics/state"), change), 200).json;
    expect(changed).toMatchObject({ partitions: 4, config: { "retention.ms": "3600000" } });
    expect(changed.config).not.toHaveProperty("cleanup.policy");
    expectStatus(await platform.rest.patch(path("/topics/state"), { partitions: 1 }), 422);
    expectStatus(await platform.rest.patch(path("/topics/state"), { config: { "retention.ms": 1 } }), 400);
    expectStatus(await platform.rest.patch(path("/topics/state"), { config: { "retention.ms": "soon" } }), 422);
    const listed = expectStatus(await platform.rest.get<PageJson<"topics", TopicJson>>(path("/topics")), 200).json;
    expect(listed.topics.map(({ name }) => name)).toEqual(["orders", "state"]);
    expectStatus(await platform.rest.delete(path("/topics/state")), 204);
    expectStatus(await platform.rest.get(path("/topics/state")), 404);
    expectStatus(await platform.rest.delete(path("/topics/__consumer_offsets")), 404);
    const orders = expectStatus(await platform.rest.get<TopicJson>(path("/topics/orders")), 200).json;
    expect(orders.partition_states.reduce((sum, { end_offset: end }) => sum + Number(end), 0)).toBe(5);
  });

  it("has consumer groups with their lag, which are reset and deleted without members", async () => {
    const get = async (name: string) =>
      expectStatus(await platform.rest.get<GroupJson>(path(`/consumer-groups/${name}`)), 200).json;
    // "readers" consumed three records of five.
    expect(await get("readers")).toMatchObject({ name: "readers", state: "Empty", lag: 2 });
    const reset = (to: string) =>
      platform.rest.post<GroupJson>(path("/consumer-groups/readers/offsets"), { topic: "orders", to });
    expect(expectStatus(await reset("earliest"), 200).json.lag).toBe(5);
    expect(expectStatus(await reset("latest"), 200).json.lag).toBe(0);
    expect(expectStatus(await reset("2020-01-01T00:00:00Z"), 200).json.lag).toBe(5);
    expectStatus(await reset("yesterday"), 400);
    expect(await receive(5, "readers")).toHaveLength(5);
    const consumer = clientOf().consumer({ groupId: "readers", maxWaitTimeInMs });
    await consumer.connect();
    await consumer.subscribe({ topics: ["orders"] });
    await consumer.run({ eachMessage: async () => undefined });
    await waitUntil("the group has a member", async () => (await get("readers")).state === "Stable");
    expectStatus(await reset("earliest"), 409);
    expectStatus(await platform.rest.delete(path("/consumer-groups/readers")), 409);
    await consumer.disconnect();
    await waitUntil("the group is empty", async () => (await get("readers")).state === "Empty");
    expectStatus(await platform.rest.delete(path("/consumer-groups/readers")), 204);
    expectStatus(await platform.rest.get(path("/consumer-groups/readers")), 404);
    const page = await platform.rest.get<PageJson<"consumer_groups", GroupJson>>(path("/consumer-groups"));
    // "reader-group" consumed four records of five.
    const others = page.json.consumer_groups.filter(({ name }) => !name.startsWith("readers-"));
    expect(others).toMatchObject([{ name: "reader-group", state: "Empty", lag: 1, offsets: [] }]);
  });

  it("applies a parameter to the running broker, and refuses others that it does not have", async () => {
    // Of four threads, a running broker makes eight at most in one change. Compaction refuses records without keys.
    const parameters = { "message.max.bytes": "2MB", "num.io.threads": "12", "log.cleanup.policy": "compact" };
    expectStatus(await platform.rest.patch(path("/configuration"), { parameters }), 200);
    const configNames = Object.keys(parameters);
    const isApplied = async () => {
      const resources = [{ type: ConfigResourceTypes.BROKER, name: "1", configNames }];
      const { resources: found } = await asAdmin((admin) =>
        admin.describeConfigs({ resources, includeSynonyms: false }),
      );
      const values = Object.fromEntries(
        (found[0]?.configEntries ?? []).map((each) => [each.configName, each.configValue]),
      );
      return values["num.io.threads"] === "12" && values["log.cleanup.policy"] === "compact";
    };
    await waitUntil("the broker has the parameters", isApplied);
    for (const refused of [{ "super.users": "User:app_user" }, { "min.insync.replicas": "2" }])
      expectStatus(await platform.rest.patch(path("/configuration"), { parameters: refused }), 400);
  });

  it("refuses what it does not have yet, with the engine's name", async () => {
    const databases = await platform.rest.post<ProblemJson>(path("/databases"), { name: "other" });
    expect(expectStatus(databases, 422).json.code).toBe("not_supported");
    const node = await platform.rest.post<ProblemJson>(path("/nodes"), { role: "replica" });
    expect(expectStatus(node, 422).text).toContain("A service of kafka has 1, 3, 4, 5 nodes: with 2, the loss");
    const two = { name: "two", database_type: "kafka", plan_name: "tier-1", storage_size_gb: 1, node_count: 2 };
    expectStatus(await platform.rest.post<ProblemJson>("/managed-services", two), 422);
  });

  it("is measured", async () => {
    const names = ["connections", "kafka_messages_in_per_sec", "kafka_bytes_out_per_sec", "kafka_consumer_lag"];
    const query = names.map((name) => `metric=${name}`).join("&");
    await waitUntil("samples of all metrics", async () => {
      const answer = await platform.rest.get<MetricsJson>(path(`/metrics?${query}&period=15m`));
      const { series } = expectStatus(answer, 200).json;
      const measured = series.filter(({ points }) => points.length > 0).map(({ metric }) => metric);
      return names.every((name) => measured.includes(name));
    });
  });

  it("is deleted", async () => {
    await services.delete(bus.service.id);
  });
});
