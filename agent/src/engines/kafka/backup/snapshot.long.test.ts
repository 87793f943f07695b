import { create } from "@bufbuild/protobuf";
import { PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { readPartitions } from "../cluster-view.ts";
import { createKafkaDriver } from "../driver.ts";
import { createTopics, deleteTopics, findCoordinator, offsetCommit, produce } from "../protocol/apis.ts";
import { requireSuccess } from "../protocol/protocol-error.ts";
import { singleRecord } from "../protocol/record-batch.ts";
import { withSession } from "../session.ts";
import { untilApplied } from "../until-applied.ts";
import { batchesOf } from "./batches.ts";
import { readFrames } from "./frames.ts";
import { openSnapshot } from "./snapshot.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const topic = "orders";
const numbers = [1, 2, 3];
/** Each broker coordinates some of them. */
const groups = Array.from({ length: 16 }, (_, index) => `group ${String.fromCodePoint(65 + index)}`);
const noId = Buffer.alloc(16).toString("base64url");
/** A response of the snapshot's reader has two of these. */
const [records, recordBytes] = [10, 700_000];
const withinMs = 300_000;
const timeoutMs = 600_000;

describe.skipIf(skip !== undefined)("a snapshot of three brokers of kafka", { timeout: timeoutMs }, () => {
  const machines: EngineMachine[] = [];

  const machineOf = (number: number): EngineMachine => {
    const machine = machines[number - 1];
    if (machine === undefined) throw new Error(`no machine ${number}`);
    return machine;
  };
  /** Partitions of the topic, in the order of their indexes. */
  const partitionsOf = async () => {
    const { instance } = machineOf(1);
    const { partitions } = await withSession(instance, AbortSignal.timeout(5_000), readPartitions);
    return partitions.filter((each) => each.topic === topic).toSorted((a, b) => a.index - b.index);
  };
  const untilComplete = () =>
    waitUntil(
      "all partitions are in sync",
      async () => {
        const found = await partitionsOf().catch(() => []);
        return found.length === numbers.length && found.every(({ inSync }) => inSync.length === numbers.length);
      },
      { withinMs, everyMs: 200 },
    );

  beforeAll(async () => {
    const [port = 0] = await freePorts(1);
    const members = numbers.map((number) => {
      const name = `orders-${number}.local.holdfast.test`;
      return { nodeId: name, number, hostname: name, publicHostname: name, address: `127.9.46.${30 + number}` };
    });
    const peers = create(PeersSchema, { clusterId: "kafka", secret: "a planted secret", othersRun: true, members });
    for (const { nodeId, address } of members) {
      const settings = { address, nodeId, port, peers };
      machines.push(await createEngineMachine(async (deps) => createKafkaDriver(deps), "kafka", "3.9", settings));
    }
    await Promise.all(
      machines.map(async (machine) => {
        const { driver, instance, signal } = machine;
        await driver.peers?.formCluster(instance, signal);
        await machine.bootstrap();
        await machine.writeConfig();
        await machine.start();
        // A broker accepts no write before another one has started.
        await waitUntil("it is ready", () => driver.ready(instance, signal).then(() => true), { withinMs });
      }),
    );
    await createTopic();
    await untilComplete();
    for (const { index, leader } of await partitionsOf()) await write(leader, index);
    for (const group of groups) await commit(group);
  }, timeoutMs);
  afterAll(async () => {
    for (const machine of machines) await machine.remove();
  });

  /** Each broker leads one partition. */
  async function createTopic(): Promise<void> {
    const assignments = numbers.map((number, index) => ({
      index,
      brokers: [number, ...numbers.filter((other) => other !== number)],
    }));
    const { instance, signal } = machineOf(1);
    const request = { name: topic, partitions: -1, replicationFactor: -1, assignments, configs: [] };
    await withSession(instance, signal, async (session) => {
      const created = await session.call(createTopics, { topics: [request], timeoutMs: 5_000, validateOnly: false });
      for (const result of created.topics) requireSuccess("CreateTopics", result);
    });
    await untilComplete();
  }

  async function recreateTopic(): Promise<void> {
    const { instance, signal } = machineOf(1);
    await withSession(instance, signal, async (session) => {
      const { results } = await session.call(deleteTopics, { topics: [{ name: topic, id: noId }], timeoutMs: 5_000 });
      for (const result of results) requireSuccess("DeleteTopics", result);
    });
    await untilApplied(signal, async () => (await partitionsOf()).length === 0);
    await createTopic();
  }

  /** Commits an offset at the broker that coordinates the group. */
  async function commit(group: string): Promise<void> {
    const { instance, signal } = machineOf(1);
    const found = await withSession(instance, signal, (session) =>
      session.call(findCoordinator, { keyType: 0, keys: [group] }),
    );
    const [coordinator] = found.coordinators;
    requireSuccess("FindCoordinator", { errorCode: coordinator?.errorCode ?? 0 });
    const topics = [{ name: topic, partitions: [{ index: 0, offset: 1, leaderEpoch: -1, metadata: null }] }];
    await withSession(machineOf(coordinator?.nodeId ?? 0).instance, signal, async (session) => {
      const answer = await session.call(offsetCommit, {
        group,
        generation: -1,
        memberId: "",
        instanceId: null,
        topics,
      });
      for (const { partitions } of answer.topics)
        for (const result of partitions) requireSuccess("OffsetCommit", result);
    });
  }

  async function write(leader: number, index: number): Promise<void> {
    const { instance, signal } = machineOf(leader);
    await withSession(instance, signal, async (session) => {
      for (let record = 0; record < records; record += 1) {
        const batch = singleRecord(Buffer.alloc(recordBytes, String(record)), Date.now());
        const topics = [{ name: topic, partitions: [{ index, records: batch }] }];
        const answer = await session.call(produce, { transactionalId: null, acks: -1, timeoutMs: 10_000, topics });
        for (const { partitions } of answer.topics) for (const result of partitions) requireSuccess("Produce", result);
      }
    });
  }

  /** The snapshot's groups and offsets by partition; `work` is called while the second partition is read. */
  async function snapshot({ instance }: EngineMachine, work: () => Promise<unknown>) {
    const source = await openSnapshot(instance, AbortSignal.timeout(timeoutMs));
    const found: { groups: string[]; offsets: number[][]; isDeleted: boolean } = {
      groups: [],
      offsets: [],
      isDeleted: false,
    };
    let isDone = false;
    try {
      for (const { bytes } of source.streams)
        for await (const { header, content } of readFrames(bytes)) {
          if (header.kind === "group") found.groups.push(header.name);
          if (header.kind === "partition") found.offsets[header.partition] = [];
          if (header.kind === "topic_deleted") found.isDeleted = true;
          if (header.kind !== "batches") continue;
          found.offsets.at(-1)?.push(...[...batchesOf(content)].map(({ baseOffset }) => baseOffset));
          if (found.offsets.length !== 2 || isDone) continue;
          isDone = true;
          await work();
        }
    } finally {
      await source.close();
    }
    return { ...found, groups: found.groups.toSorted() };
  }

  const offsets = numbers.map(() => Array.from({ length: records }, (_, offset) => offset));
  const all = { groups, offsets, isDeleted: false };
  /** The broker that leads the second partition, and another one, by which the snapshot is taken. */
  async function leaderAndOther() {
    const leader = machineOf((await partitionsOf())[1]?.leader ?? 0);
    const other = machines.find((machine) => machine !== leader);
    if (other === undefined) throw new Error("there is no other broker");
    return { leader, other };
  }

  it("has all records although a leader is killed while its partition is read", async () => {
    const { leader, other } = await leaderAndOther();
    expect(await snapshot(other, () => leader.stop("SIGKILL"))).toEqual(all);
    await leader.start();
    await leader.driver.ready(leader.instance, leader.signal);
    await untilComplete();
  });

  it("has all records although a leader hangs while its partition is read", async () => {
    const { leader, other } = await leaderAndOther();
    let resume = () => {};
    try {
      expect(await snapshot(other, async () => void (resume = leader.pause()))).toEqual(all);
    } finally {
      resume();
    }
    await untilComplete();
  });

  it("has all groups although a broker that coordinates some of them hangs", async () => {
    const { leader, other } = await leaderAndOther();
    const resume = leader.pause();
    try {
      expect(await snapshot(other, async () => undefined)).toEqual(all);
    } finally {
      resume();
    }
    await untilComplete();
  });

  it("has nothing of a topic that replaces the one that is read", async () => {
    const found = await snapshot(machineOf(1), async () => {
      await recreateTopic();
      for (const { index, leader: number } of await partitionsOf()) await write(number, index);
    });
    expect(found.isDeleted).toBe(true);
    expect(found.offsets.length).toBe(2);
  });
});
