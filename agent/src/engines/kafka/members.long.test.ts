import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { kafkaVerifier } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { effectiveParameters } from "../effective-parameters.ts";
import { readPartitions } from "./cluster-view.ts";
import { createKafkaDriver } from "./driver.ts";
import { isSame } from "./parameters.ts";
import { createTopics, fetch, produce } from "./protocol/apis.ts";
import { requireSuccess } from "./protocol/protocol-error.ts";
import { singleRecord } from "./protocol/record-batch.ts";
import { withSession } from "./session.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");
const topic = "orders";
const partitions = 3;
const withinMs = 90_000;
const timeoutMs = 180_000;

describe.skipIf(skip !== undefined)("members of a cluster of kafka", { timeout: timeoutMs }, () => {
  const machines = new Map<number, EngineMachine>();
  let port = 0;
  /** Values of acknowledged writes. */
  const acknowledged: string[] = [];
  let sequence = 0;

  const addressOf = (number: number) => `127.9.46.${20 + number}`;
  const members = (numbers: readonly number[]) =>
    numbers.map((number) => {
      const name = `orders-${number}.local.holdfast.test`;
      return { nodeId: name, number, hostname: name, publicHostname: name, address: addressOf(number) };
    });

  const peersOf = (numbers: readonly number[], leaving: readonly number[] = []) =>
    create(PeersSchema, {
      clusterId: "kafka",
      secret: "a planted secret",
      othersRun: true,
      leaving: [...leaving],
      members: members(numbers),
    });

  async function addMachine(number: number, numbers: readonly number[]): Promise<EngineMachine> {
    const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: kafkaVerifier("secret") });
    const machine = await createEngineMachine(async (deps) => createKafkaDriver(deps), "kafka", "3.9", {
      users: [user],
      address: addressOf(number),
      nodeId: `orders-${number}.local.holdfast.test`,
      port,
      peers: peersOf(numbers),
    });
    machines.set(number, machine);
    return machine;
  }

  const machineOf = (number: number): EngineMachine => {
    const machine = machines.get(number);
    if (machine === undefined) throw new Error(`no machine ${number}`);
    return machine;
  };

  async function changeMembers(numbers: readonly number[], leaving: readonly number[] = []): Promise<void> {
    for (const machine of machines.values()) {
      machine.change({ peers: peersOf(numbers, leaving) });
      await machine.writeConfig();
    }
    for (const number of numbers)
      await machineOf(number)
        .driver.reload(machineOf(number).instance, machineOf(number).signal)
        .catch(() => undefined);
  }

  const reportOf = (number: number) => {
    const { driver, instance } = machineOf(number);
    return driver.peers?.report(instance, AbortSignal.timeout(3_000)).catch(() => undefined);
  };

  /** The leader's report. */
  async function leaderReport(numbers: readonly number[]) {
    for (const number of numbers) {
      const report = await reportOf(number);
      if (report?.isLeader === true && report.quorum.hasMajority) return { number, report };
    }
    return undefined;
  }

  /** Does the work of the leader's agent until `isDone`. */
  const settle = (text: string, numbers: readonly number[], isDone: () => Promise<boolean>) =>
    waitUntil(
      text,
      async () => {
        const found = await leaderReport(numbers);
        if (found === undefined) return false;
        const { driver, instance } = machineOf(found.number);
        const limit = AbortSignal.timeout(3_000);
        const isHere = (number: number) => found.report.members.includes(number);
        const next = instance.spec.peers?.leaving.find(isHere);
        const change =
          next === undefined ? driver.peers?.balance?.(instance, limit) : driver.peers?.leave(instance, next, limit);
        await change?.catch(() => undefined);
        return isDone();
      },
      { withinMs, everyMs: 500 },
    );

  const isComplete = async (numbers: readonly number[]) => {
    for (const number of numbers) {
      const report = await reportOf(number);
      if (report?.inSync !== true || report.members.toSorted((a, b) => a - b).join() !== numbers.join()) return false;
      if (report.safeToRestart.length !== numbers.length) return false;
    }
    return true;
  };

  /** One record to the leader of its partition, acknowledged by all in-sync replicas. */
  async function write(numbers: readonly number[]): Promise<boolean> {
    const value = `record ${(sequence += 1)}`;
    const index = sequence % partitions;
    for (const number of numbers) {
      const { instance } = machineOf(number);
      try {
        await withSession(instance, AbortSignal.timeout(5_000), async (session) => {
          const topics = [
            { name: topic, partitions: [{ index, records: singleRecord(Buffer.from(value), Date.now()) }] },
          ];
          const answer = await session.call(produce, { transactionalId: null, acks: -1, timeoutMs: 4_000, topics });
          const result = answer.topics[0]?.partitions[0];
          if (result === undefined) throw new Error("no answer");
          requireSuccess("Produce", result);
        });
        acknowledged.push(value);
        return true;
      } catch {
        // Another member leads the partition, or the write was not acknowledged.
      }
    }
    return false;
  }

  /** Writes until the work ends. */
  async function whileWriting(numbers: readonly number[], work: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const writing = (async () => {
      while (!isOver) await waitUntil("a record is written", () => isOver || write(numbers), { everyMs: 5 });
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await writing;
    }
  }

  async function readAll(numbers: readonly number[]): Promise<string> {
    let text = "";
    for (let index = 0; index < partitions; index += 1) {
      const found = await withSession(machineOf(numbers[0] ?? 0).instance, AbortSignal.timeout(5_000), readPartitions);
      const leader = found.partitions.find((each) => each.topic === topic && each.index === index)?.leader ?? 0;
      text += await withSession(machineOf(leader).instance, AbortSignal.timeout(20_000), async (session) => {
        let read = "";
        for (let fetchOffset = 0; ; ) {
          const position = { index, leaderEpoch: -1, fetchOffset, lastFetchedEpoch: -1, startOffset: -1 };
          const answer = await session.call(fetch, {
            replicaId: -1,
            maxWaitMs: 0,
            minBytes: 0,
            maxBytes: 1 << 20,
            isolationLevel: 0,
            sessionId: 0,
            sessionEpoch: -1,
            topics: [{ name: topic, partitions: [{ ...position, maxBytes: 1 << 20 }] }],
            forgotten: [],
            rackId: "",
          });
          const records = answer.topics[0]?.partitions[0]?.records ?? Buffer.alloc(0);
          if (records.length === 0) return read;
          read += records.toString("latin1");
          // Batches of one record.
          for (let at = 0; at + 12 <= records.length; at += 12 + records.readInt32BE(at + 8))
            fetchOffset = Number(records.readBigInt64BE(at)) + 1;
        }
      });
    }
    return text;
  }

  async function expectNothingLost(numbers: readonly number[]): Promise<void> {
    const text = await readAll(numbers);
    const found = new Set([...text.matchAll(/record \d+/g)].map(([value]) => value));
    // A digit of the next field of the batch may follow a value.
    expect(acknowledged.filter((value) => !found.has(value) && !text.includes(value))).toEqual([]);
  }

  beforeAll(async () => {
    [port = 0] = await freePorts(1);
    const numbers = [1, 2, 3];
    for (const number of numbers) await addMachine(number, numbers);
    await Promise.all(
      [...machines.values()].map(async (machine) => {
        await machine.driver.peers?.formCluster(machine.instance, machine.signal);
        await machine.bringUp();
      }),
    );
    const { instance, signal } = machineOf(1);
    await withSession(instance, signal, (session) =>
      session.call(createTopics, {
        topics: [{ name: topic, partitions, replicationFactor: 3, assignments: [], configs: [] }],
        timeoutMs: 5_000,
        validateOnly: false,
      }),
    );
  }, timeoutMs);

  afterAll(async () => {
    for (const machine of machines.values()) await machine.remove();
  });

  async function join(number: number, numbers: readonly number[]): Promise<void> {
    const machine = await addMachine(number, numbers);
    await changeMembers(numbers);
    await machine.driver.peers?.join(machine.instance, machine.signal);
    await machine.bringUp();
    await waitUntil(
      `member ${number} votes`,
      async () => {
        await machine.driver.peers?.admit?.(machine.instance, AbortSignal.timeout(3_000)).catch(() => undefined);
        return (await reportOf(number))?.members.includes(number) === true;
      },
      { withinMs, everyMs: 300 },
    );
  }

  it("form one cluster in which each partition has three replicas", async () => {
    const numbers = [1, 2, 3];
    await waitUntil("all members are complete", () => isComplete(numbers), { withinMs, everyMs: 300 });
    const { instance, signal } = machineOf(1);
    const { partitions: all } = await withSession(instance, signal, readPartitions);
    expect(all.map(({ replicas }) => replicas.length).filter((count) => count !== 3)).toEqual([]);
    for (const { driver, instance: own } of machines.values()) {
      const { effectiveParameters: found } = await driver.observe(own, signal);
      const offered = effectiveParameters(own);
      expect(offered.get("min.insync.replicas")).toBe("2");
      expect([...offered].filter(([name, value]) => !isSame(found[name] ?? "", value))).toEqual([]);
    }
    for (const machine of machines.values()) {
      const listed = await machine.driver.users?.list(machine.instance, machine.signal);
      expect(listed?.map(({ username }) => username)).toEqual(["app_user"]);
    }
  });

  it("lose no acknowledged record when the one that leads is killed", async () => {
    const numbers = [1, 2, 3];
    const leader = (await leaderReport(numbers))?.number ?? 1;
    await whileWriting(numbers, async () => {
      const before = acknowledged.length;
      await waitUntil("writes are acknowledged", () => acknowledged.length > before + 50, { withinMs });
      await machineOf(leader).stop("SIGKILL");
      const others = numbers.filter((each) => each !== leader);
      await waitUntil("another one leads", async () => (await leaderReport(others)) !== undefined, { withinMs });
      for (const number of others) expect((await reportOf(number))?.safeToRestart ?? []).not.toContain(number);
      const after = acknowledged.length;
      await waitUntil("writes continue", () => acknowledged.length > after + 50, { withinMs });
      await machineOf(leader).start();
      await machineOf(leader).driver.ready(machineOf(leader).instance, machineOf(leader).signal);
      await waitUntil("all members are complete", () => isComplete(numbers), { withinMs, everyMs: 300 });
    });
    await expectNothingLost(numbers);
  });

  it("lose no acknowledged record while one after the other restarts", async () => {
    const numbers = [1, 2, 3];
    await whileWriting(numbers, async () => {
      for (const number of numbers) {
        const isSafe = async () => (await reportOf(number))?.safeToRestart.includes(number) === true;
        await waitUntil(`member ${number} may restart`, isSafe, { withinMs, everyMs: 300 });
        const machine = machineOf(number);
        await machine.stop();
        await machine.start();
        await machine.driver.ready(machine.instance, machine.signal);
      }
      await waitUntil("all members are complete", () => isComplete(numbers), { withinMs, everyMs: 300 });
    });
    await expectNothingLost(numbers);
  });

  it("replace a member: a fourth one joins, and the first one is drained and removed", async () => {
    await whileWriting([1, 2, 3], async () => {
      await join(4, [1, 2, 3, 4]);
      await settle("the fourth one has partitions, each of which has three replicas", [1, 2, 3, 4], async () => {
        const { instance } = machineOf(2);
        const { partitions: all } = await withSession(instance, AbortSignal.timeout(3_000), readPartitions);
        const ofTopic = all.filter((each) => each.topic === topic);
        return ofTopic.some(({ replicas }) => replicas.includes(4)) && all.every(({ inSync }) => inSync.length === 3);
      });
      await changeMembers([1, 2, 3, 4], [1]);
      await settle("member 1 is removed", [1, 2, 3, 4], async () => {
        const found = await leaderReport([2, 3, 4]);
        return found !== undefined && !found.report.members.includes(1) && !found.report.joining?.includes(1);
      });
    });
    // The cluster does not have it any more, so it cannot leave in order.
    await machineOf(1).stop("SIGKILL");
    await machineOf(1).remove();
    machines.delete(1);
    await changeMembers([2, 3, 4]);
    await settle("the others are complete", [2, 3, 4], () => isComplete([2, 3, 4]));
    await expectNothingLost([2, 3, 4]);
  });

  it("take a member back whose disk was lost", async () => {
    const machine = machineOf(3);
    await machine.stop("SIGKILL");
    await machine.driver.peers?.join(machine.instance, machine.signal);
    await machine.bringUp();
    await waitUntil(
      "it votes with all its data",
      async () => {
        await machine.driver.peers?.admit?.(machine.instance, AbortSignal.timeout(3_000)).catch(() => undefined);
        return isComplete([2, 3, 4]);
      },
      { withinMs, everyMs: 500 },
    );
    await expectNothingLost([2, 3, 4]);
  });
});
