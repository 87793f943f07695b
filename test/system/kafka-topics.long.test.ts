import type { AuditLogEntry, Configuration } from "@holdfast/sdk/index.ts";
import type { LogsJson, PageJson, ProblemJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type CommandLine, createCommandLine } from "@holdfast/testing/platform/command-line.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Admin, ConfigResourceTypes } from "kafkajs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  type TopicCalls,
  topicCallsByCommand,
  topicCallsByGrpc,
  topicCallsByRest,
  topicCallsBySdk,
} from "./kafka/topic-calls.ts";

interface RuleJson {
  readonly id: string;
  readonly state: string;
  readonly value: number | null;
}

const skip = await requireRecipes(import.meta.filename, "kafka");
const longMs = 300_000;
const interfaces = ["rest", "grpc", "sdk", "command"] as const;

describe.skipIf(skip !== undefined)("topics and consumer groups by each interface", { timeout: longMs }, () => {
  let platform: Platform;
  let bus: RunningService;
  let admin: Admin;
  let shell: CommandLine;
  let calls: Readonly<Record<(typeof interfaces)[number], TopicCalls>>;
  const ends: (() => void | Promise<void>)[] = [];

  beforeAll(async () => {
    platform = await startPlatform({ environment: { HOLDFAST_SAMPLE_INTERVAL_MS: "1000" } });
    ends.push(() => platform.remove());
    const services = createServices(platform);
    const parameters = { "group.initial.rebalance.delay.ms": "0" };
    const { id } = await services.create("bus", { database_type: "kafka", parameters });
    await services.settled(id, "Running", longMs);
    bus = await services.open(id);
    admin = serviceKafka(platform, bus).admin();
    await admin.connect();
    ends.push(() => admin.disconnect());
    shell = createCommandLine({ HOLDFAST_DATA: platform.directory });
    ends.push(() => shell.remove());
    const grpc = topicCallsByGrpc(platform, id);
    ends.push(() => grpc.channel.close());
    calls = {
      rest: topicCallsByRest(platform, id),
      grpc,
      sdk: topicCallsBySdk(platform, id),
      command: topicCallsByCommand(shell, "bus"),
    };
  }, longMs);
  afterAll(async () => {
    for (const end of ends.toReversed()) await end();
  }, longMs);

  async function send(topic: string, count: number): Promise<void> {
    const producer = serviceKafka(platform, bus).producer();
    await producer.connect();
    const messages = Array.from({ length: count }, (_, index) => ({ partition: index % 2, value: String(index) }));
    await producer.send({ topic, acks: -1, messages });
    await producer.disconnect();
  }

  it.each(interfaces)("%s creates, lists, returns, changes and deletes a topic", async (by) => {
    const name = `orders-${by}`;
    const config = { "retention.ms": "86400000" };
    expect(await calls[by].create(name)).toMatchObject({ partitions: 2, config });
    const { topics } = await admin.fetchTopicMetadata({ topics: [name] });
    expect(topics[0]?.partitions).toHaveLength(2);
    expect(await calls[by].list()).toContain(name);
    expect(await calls[by].get(name)).toMatchObject({ partitions: 2, config });
    expect(await calls[by].update(name)).toMatchObject({ partitions: 3, config: {} });
    const after = await admin.fetchTopicMetadata({ topics: [name] });
    expect(after.topics[0]?.partitions).toHaveLength(3);
    await calls[by].delete(name);
    expect(await admin.listTopics()).not.toContain(name);
    await expect(calls[by].get(name)).rejects.toThrow();
  });

  it.each(interfaces)("%s lists, returns, resets and deletes a consumer group", async (by) => {
    const [groupId, topic] = [`billing-${by}`, `payments-${by}`];
    await calls[by].create(topic);
    await send(topic, 10);
    await admin.setOffsets({ groupId, topic, partitions: [0, 1].map((partition) => ({ partition, offset: "2" })) });
    expect(await calls[by].groups()).toContain(groupId);
    expect(await calls[by].group(groupId)).toMatchObject({ state: "Empty", lag: 6 });
    const committed = async () => {
      const [found] = await admin.fetchOffsets({ groupId, topics: [topic] });
      return found?.partitions.map(({ offset }) => offset).toSorted();
    };
    expect(await calls[by].reset(groupId, topic, "earliest")).toMatchObject({ lag: 10 });
    expect(await committed()).toEqual(["0", "0"]);
    expect(await calls[by].reset(groupId, topic, "latest")).toMatchObject({ lag: 0 });
    expect(await committed()).toEqual(["5", "5"]);
    await calls[by].deleteGroup(groupId);
    expect((await admin.listGroups()).groups.map((each) => each.groupId)).not.toContain(groupId);
    await expect(calls[by].group(groupId)).rejects.toThrow();
  });

  it("a topic that exists is refused, also as it is, unless its own request is repeated", async () => {
    const topics = `/managed-services/${bus.service.id}/topics`;
    const create = (body: object, key?: string) =>
      platform.rest.post<ProblemJson>(topics, body, key === undefined ? {} : { headers: { "idempotency-key": key } });
    const once = { name: "once", partitions: 2 };
    expectStatus(await create(once, "first"), 201);
    const replayed = expectStatus(await create(once, "first"), 201);
    expect(replayed.headers["idempotency-replayed"]).toBe("true");
    for (const [body, key] of [[once], [once, "second"], [{ name: "once" }]] as const) {
      const { json } = expectStatus(await create(body, key), 409);
      expect(json).toMatchObject({ code: "name_taken", detail: expect.stringContaining("auto.create.topics.enable") });
    }
  });

  it("the deletion of a topic or group that does not exist is refused", async () => {
    for (const kind of ["topics", "consumer-groups"])
      expectStatus(await platform.rest.delete(`/managed-services/${bus.service.id}/${kind}/none`), 404);
  });

  it("a topic takes no batch that a backup cannot read", async () => {
    const topics = `/managed-services/${bus.service.id}/topics`;
    const config = { "max.message.bytes": "100000000" };
    const refused = await platform.rest.post<ProblemJson>(topics, { name: "huge", config });
    expect(expectStatus(refused, 422).json.detail).toContain("max.message.bytes is at most");
    await calls.rest.create("small");
    expectStatus(await platform.rest.patch(`${topics}/small`, { config }), 422);
    for (const name of ["message.max.bytes", "socket.request.max.bytes"]) {
      const parameters = { [name]: "100000000" };
      expectStatus(await platform.rest.patch(`/managed-services/${bus.service.id}/configuration`, { parameters }), 400);
    }
    // An admin of Kafka can change a topic's own limit, and requests have one, too.
    const configEntries = [{ name: "max.message.bytes", value: "100000000" }];
    await admin.alterConfigs({
      validateOnly: false,
      resources: [{ type: ConfigResourceTypes.TOPIC, name: "small", configEntries }],
    });
    const producer = serviceKafka(platform, bus).producer({ retry: { retries: 0 } });
    await producer.connect();
    const value = Buffer.alloc(66 << 20, "x");
    await expect(producer.send({ topic: "small", acks: -1, messages: [{ value }] })).rejects.toThrow();
    await producer.disconnect();
  });

  it("each parameter is shown with the value that the broker runs with", async () => {
    const path = `/managed-services/${bus.service.id}/configuration`;
    const { parameters } = expectStatus(await platform.rest.get<Configuration>(path), 200).json;
    const configNames = Object.keys(parameters);
    const resources = [{ type: ConfigResourceTypes.BROKER, name: "1", configNames }];
    const { resources: found } = await admin.describeConfigs({ resources, includeSynonyms: false });
    const running = new Map(found[0]?.configEntries.map(({ configName, configValue }) => [configName, configValue]));
    const isSame = (a: string, b: string) => a === b || Number(a) === Number(b);
    const others = Object.entries(parameters).filter(([name, { value }]) => !isSame(running.get(name) ?? "", value));
    expect(configNames.length).toBeGreaterThan(40);
    expect(others).toEqual([]);
    expect(parameters["min.insync.replicas"]).toMatchObject({ value: "1", default: "1", warning: null });
  });

  it("a database is refused without an operation", async () => {
    const path = `/managed-services/${bus.service.id}`;
    const { json } = expectStatus(await platform.rest.post<ProblemJson>(`${path}/databases`, { name: "x" }), 422);
    expect(json.code).toBe("not_supported");
    const { operations } = expectStatus(
      await platform.rest.get<PageJson<"operations", { type: string }>>(`${path}/operations`),
      200,
    ).json;
    expect(operations.map(({ type }) => type)).not.toContain("create_database");
  });

  it("the lag of all groups is a metric, and fires an alert", async () => {
    const path = `/managed-services/${bus.service.id}`;
    await calls.rest.create("late");
    await send("late", 9);
    for (const groupId of ["late-a", "late-b"])
      await admin.setOffsets({ groupId, topic: "late", partitions: [{ partition: 0, offset: "1" }] });
    // Of the five records of the partition, each group has consumed one.
    const lag = 8;
    const body = { metric: "kafka_consumer_lag", condition: "gt", threshold: lag - 1 };
    const { id } = expectStatus(await platform.rest.post<RuleJson>(`${path}/alerts/rules`, body), 201).json;
    const rule = async () => expectStatus(await platform.rest.get<RuleJson>(`${path}/alerts/rules/${id}`), 200).json;
    const is = (state: string, value: number) =>
      waitUntil(`the alert is ${state}`, async () => {
        const now = await rule();
        return now.state === state && now.value === value;
      });
    await is("firing", lag);
    for (const group of ["late-a", "late-b"]) await calls.rest.reset(group, "late", "latest");
    await is("ok", 0);
  });

  it("the broker's log is a log of the service", async () => {
    const logs = `/managed-services/${bus.service.id}/logs?contains=Kafka+Server+started`;
    const { lines } = expectStatus(await platform.rest.get<LogsJson>(logs), 200).json;
    expect(lines).toMatchObject([{ node_id: bus.service.nodes[0]?.id, level: "info" }]);
  });

  it("each change is in the audit log with its caller, object and outcome", async () => {
    const entriesOf = async (action: string) => {
      const query = `object=${bus.service.id}&action=${action}&limit=50`;
      const found = await platform.rest.get<PageJson<"entries", AuditLogEntry>>(`/audit-log?${query}`);
      return expectStatus(found, 200).json.entries;
    };
    const expected = {
      "topic.create": [
        "huge refused: engine_refused",
        "late ok",
        "once ok",
        ...Array.from({ length: 3 }, () => "once refused: name_taken"),
        "small ok",
        ...interfaces.flatMap((by) => [`orders-${by} ok`, `payments-${by} ok`]),
      ],
      "topic.update": ["small refused: engine_refused", ...interfaces.map((by) => `orders-${by} ok`)],
      "topic.delete": ["none refused: topic_not_found", ...interfaces.map((by) => `orders-${by} ok`)],
      "consumer-group.reset": [
        "late-a",
        "late-b",
        ...interfaces.flatMap((by) => [`billing-${by}`, `billing-${by}`]),
      ].map((name) => `${name} ok`),
      "consumer-group.delete": [
        "none refused: consumer_group_not_found",
        ...interfaces.map((by) => `billing-${by} ok`),
      ],
    };
    for (const [action, outcomes] of Object.entries(expected)) {
      const entries = await waitUntil(`${action} is in the audit log`, async () => {
        const found = await entriesOf(action);
        return found.length >= outcomes.length && found;
      });
      const outcomeOf = ({ detail, result, action: full }: AuditLogEntry) =>
        full === action ? `${detail} ${result}` : `${detail} ${result}: ${full.slice(action.length + 1)}`;
      expect(entries.map(outcomeOf).toSorted()).toEqual(outcomes.toSorted());
      for (const { actor } of entries) expect(actor).toMatch(/^(api_key|token|user):/);
    }
    const { stdout } = await shell.run(["audit", "--object", bus.service.id, "--action", "topic.delete"]);
    expect(stdout).toMatch(/topic\.delete topic_not_found .*refused/);
  });
});
