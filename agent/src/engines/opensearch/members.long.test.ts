import { create } from "@bufbuild/protobuf";
import { EngineUserSchema, PeersSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { openClient, opensearchVerifier } from "@holdfast/testing/engines/opensearch-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type Call, call } from "./api.ts";
import { openSnapshot } from "./backup/snapshot.ts";
import { createOpensearchDriver } from "./driver.ts";

const skip = await requireRecipes(import.meta.filename, "opensearch");
const index = "orders";
const maxDocuments = 1_000_000;
const withinMs = 300_000;
const timeoutMs = 900_000;
const clusterId = "opensearch";

describe.skipIf(skip !== undefined)("members of a cluster of opensearch", { timeout: timeoutMs }, () => {
  const machines = new Map<number, EngineMachine>();
  let port = 0;
  /** Ids of acknowledged documents. */
  const acknowledged: string[] = [];
  let sequence = 0;

  const nameOf = (number: number) => `logs-${number}.local.holdfast.test`;
  const addressOf = (number: number) => `127.9.52.${20 + number}`;
  const peersOf = (numbers: readonly number[], leaving: readonly number[] = []) =>
    create(PeersSchema, {
      clusterId,
      secret: "a planted secret",
      othersRun: true,
      leaving: [...leaving],
      members: numbers.map((number) => {
        const name = nameOf(number);
        return { nodeId: name, number, hostname: name, publicHostname: name, address: addressOf(number) };
      }),
    });

  async function addMachine(number: number, numbers: readonly number[]): Promise<EngineMachine> {
    const user = create(EngineUserSchema, {
      username: "app_user",
      role: "admin",
      verifier: opensearchVerifier("secret"),
    });
    const machine = await createEngineMachine(async (deps) => createOpensearchDriver(deps), "opensearch", "2.19", {
      users: [user],
      address: addressOf(number),
      nodeId: nameOf(number),
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
  const callAt = (number: number, request: Call, ms = 30_000) =>
    call(machineOf(number).instance, request, AbortSignal.timeout(ms));
  const longSignal = () => AbortSignal.timeout(withinMs);

  async function start(number: number): Promise<void> {
    const machine = machineOf(number);
    await machine.writeConfig();
    await machine.start();
    await machine.driver.ready(machine.instance, longSignal()).catch((error: unknown) => {
      throw new Error(machine.output().slice(-4_000), { cause: error });
    });
  }

  async function changeMembers(numbers: readonly number[], leaving: readonly number[] = []): Promise<void> {
    for (const machine of machines.values()) {
      machine.change({ peers: peersOf(numbers, leaving) });
      await machine.writeConfig();
      await machine.startCompanions();
    }
  }

  const reportOf = async (number: number) => {
    const { driver, instance } = machineOf(number);
    return driver.peers?.report(instance, AbortSignal.timeout(5_000)).catch(() => undefined);
  };

  async function leaderIn(numbers: readonly number[]) {
    for (const number of numbers) {
      const report = await reportOf(number);
      if (report?.isLeader === true && report.quorum.hasMajority) return { number, report };
    }
    return undefined;
  }

  /** Does the work of all agents until `isDone`. */
  const settle = (text: string, numbers: readonly number[], isDone: () => Promise<boolean>) =>
    waitUntil(
      text,
      async () => {
        for (const number of numbers) {
          const report = await reportOf(number);
          if (report === undefined) continue;
          const { driver, instance } = machineOf(number);
          const limit = AbortSignal.timeout(5_000);
          const { members, joining = [] } = report;
          if (joining.includes(number)) await driver.peers?.admit?.(instance, limit).catch(() => undefined);
          if (!report.isLeader || !report.quorum.hasMajority) continue;
          const isHere = (each: number) => members.includes(each) || joining.includes(each);
          const next = instance.spec.peers?.leaving.find(isHere);
          if (next !== undefined) await driver.peers?.leave(instance, next, limit).catch(() => undefined);
          else if (joining.length === 0) await driver.peers?.balance?.(instance, limit).catch(() => undefined);
        }
        return isDone();
      },
      { withinMs, everyMs: 500, describe: async () => JSON.stringify(await Promise.all(numbers.map(reportOf))) },
    );

  const isComplete = async (numbers: readonly number[]) => {
    for (const number of numbers) {
      const report = await reportOf(number);
      if (report?.inSync !== true || report.members.join() !== numbers.join()) return false;
      if (report.safeToRestart.length !== numbers.length) return false;
    }
    return true;
  };
  const areComplete = (numbers: readonly number[]) =>
    settle(`members ${numbers.join()} are complete`, numbers, () => isComplete(numbers));

  async function write(numbers: readonly number[]): Promise<boolean> {
    const id = String((sequence += 1));
    for (const number of numbers) {
      try {
        await callAt(number, { method: "PUT", path: `/${index}/_doc/${id}?timeout=10s`, body: { id } }, 15_000);
        acknowledged.push(id);
        return true;
      } catch {
        // The member is down, or the write was not acknowledged.
      }
    }
    return false;
  }

  async function whileWriting(numbers: readonly number[], work: () => Promise<unknown>): Promise<void> {
    let isOver = false;
    const writing = (async () => {
      while (!isOver)
        await waitUntil("a document is written", () => isOver || write(numbers), { withinMs, everyMs: 5 });
    })();
    try {
      await work();
    } finally {
      isOver = true;
      await writing;
    }
  }

  async function idsIn(machine: EngineMachine): Promise<Set<string>> {
    const read = (request: Call) => call(machine.instance, request, AbortSignal.timeout(60_000));
    await read({ method: "POST", path: `/${index}/_refresh` });
    const { hits } = (await read({
      method: "POST",
      path: `/${index}/_search`,
      body: { size: maxDocuments, _source: false },
    })) as { hits: { hits: readonly { readonly _id: string }[] } };
    return new Set(hits.hits.map(({ _id: id }) => id));
  }

  async function expectNothingLost(number: number): Promise<void> {
    const found = await idsIn(machineOf(number));
    expect(acknowledged.filter((id) => !found.has(id))).toEqual([]);
  }

  beforeAll(async () => {
    [port = 0] = await freePorts(1);
    const machine = await addMachine(1, [1]);
    await machine.driver.peers?.formCluster(machine.instance, machine.signal);
    await machine.bootstrap();
    await start(1);
    await callAt(1, {
      method: "PUT",
      path: `/${index}`,
      body: { settings: { number_of_shards: 3, max_result_window: maxDocuments } },
    });
  }, timeoutMs);

  afterAll(async () => {
    for (const machine of machines.values()) await machine.remove();
  }, timeoutMs);

  async function join(number: number, numbers: readonly number[]): Promise<void> {
    const machine = await addMachine(number, numbers);
    await changeMembers(numbers);
    await machine.driver.peers?.join(machine.instance, machine.signal);
    await machine.bootstrap();
    await start(number);
  }

  it("grow from one to three, and then each index has a replica", async () => {
    await areComplete([1]);
    await callAt(1, { method: "PUT", path: "/protected", body: { settings: { "index.blocks.read_only": true } } });
    await whileWriting([1], async () => {
      await join(2, [1, 2, 3]);
      await settle("member 2 joined", [1, 2], async () => (await reportOf(1))?.members.join() === "1,2");
      await join(3, [1, 2, 3]);
      await areComplete([1, 2, 3]);
    });
    const replicas = async () => {
      const listed = await machineOf(1).driver.indices?.list(machineOf(1).instance, longSignal());
      return listed?.find(({ name }) => name === index);
    };
    const clusterCheck = async () => {
      const { checks } = await machineOf(1).driver.observe(machineOf(1).instance, longSignal());
      return checks.find((each) => each.name === "cluster");
    };
    await settle("health names the index that refuses its replica", [1, 2, 3], async () => {
      const check = await clusterCheck();
      return check?.status === "degraded" && check.reason.startsWith("the index protected has no replica: ");
    });
    await callAt(1, { method: "PUT", path: "/protected/_settings", body: { "index.blocks.read_only": null } });
    await settle("the index gets it without the block", [1, 2, 3], async () => {
      const [{ rep } = {}] = (await callAt(1, {
        method: "GET",
        path: "/_cat/indices/protected?format=json&h=rep",
      })) as { rep: string }[];
      return rep === "1" && (await clusterCheck())?.status === "healthy";
    });
    await settle("the index has replicas", [1, 2, 3], async () => {
      const found = await replicas();
      return found?.replicas === 1 && found.health === "green";
    });
    await areComplete([1, 2, 3]);
    for (const number of [1, 2, 3]) {
      const { driver, instance } = machineOf(number);
      const { checks } = await driver.observe(instance, longSignal());
      expect(checks.filter(({ status }) => status !== "healthy")).toEqual([]);
      expect((await driver.users?.list(instance, longSignal()))?.map(({ username }) => username)).toEqual(["app_user"]);
    }
    await expectNothingLost(2);
  });

  it("lose no acknowledged document when the one that leads is killed", async () => {
    const numbers = [1, 2, 3];
    const leader = (await leaderIn(numbers))?.number ?? 1;
    const others = numbers.filter((each) => each !== leader);
    await whileWriting(numbers, async () => {
      const before = acknowledged.length;
      await waitUntil("writes are acknowledged", () => acknowledged.length > before + 20, { withinMs });
      await machineOf(leader).stop("SIGKILL");
      await waitUntil("another one leads", async () => (await leaderIn(others)) !== undefined, { withinMs });
      for (const number of others) {
        const isLost = async () => {
          const report = await reportOf(number);
          return report?.quorum.reachable === 2 ? report : undefined;
        };
        const report = await waitUntil(`member ${number} reports the loss`, isLost, { withinMs });
        expect(report.members).toEqual(numbers);
        expect(others.filter((each) => report.safeToRestart.includes(each))).toEqual([]);
      }
      const after = acknowledged.length;
      await waitUntil("writes continue", () => acknowledged.length > after + 20, { withinMs });
      await start(leader);
      await areComplete(numbers);
    });
    await expectNothingLost(leader);
  });

  it("lose no acknowledged document while one after the other restarts", async () => {
    const numbers = [1, 2, 3];
    await whileWriting(numbers, async () => {
      for (const number of numbers) {
        const isSafe = async () => (await reportOf(number))?.safeToRestart.includes(number) === true;
        await settle(`member ${number} may restart`, numbers, isSafe);
        await machineOf(number).stop();
        await start(number);
      }
      await areComplete(numbers);
    });
    await expectNothingLost(1);
  });

  it("have snapshots with the shards of all members, which a single member restores", async () => {
    const { instance, run } = machineOf((await leaderIn([1, 2, 3]))?.number ?? 1);
    const before = [...acknowledged];
    const source = await openSnapshot({ run }, instance, longSignal());
    const parts: Buffer[] = [];
    try {
      for (const { bytes } of source.streams) for await (const part of bytes) parts.push(Buffer.from(part));
      await source.end();
    } finally {
      await source.close();
    }
    const copy = await createEngineMachine(async (deps) => createOpensearchDriver(deps), "opensearch", "2.19", {
      address: addressOf(9),
      nodeId: nameOf(1),
      peers: create(PeersSchema, {
        clusterId: "copy",
        secret: "another planted secret",
        members: [{ nodeId: nameOf(1), number: 1, hostname: nameOf(1), address: addressOf(9) }],
      }),
    });
    try {
      async function* stream() {
        yield* parts;
      }
      const { backup } = copy.driver;
      await copy.asComponent(async () => {
        await backup?.restore.unpack(copy.instance, "repository", stream(), longSignal());
        await backup?.restore.finish(
          copy.instance,
          {
            target: { kind: "backup_end" },
            isSameService: false,
            log: undefined,
            scratch: "",
            report: () => undefined,
          },
          longSignal(),
        );
      });
      await copy.bootstrap();
      await copy.writeConfig();
      await copy.start();
      await copy.driver.ready(copy.instance, longSignal());
      const found = await idsIn(copy);
      expect(before.filter((id) => !found.has(id))).toEqual([]);
      const report = await copy.driver.peers?.report(copy.instance, longSignal());
      expect(report).toMatchObject({ isLeader: true, members: [1], safeToRestart: [1] });
    } finally {
      await copy.remove();
    }
  });

  it("replace a member: a fourth one joins, and the one that leads is drained and removed", async () => {
    const leader = (await leaderIn([1, 2, 3]))?.number ?? 1;
    const others = [1, 2, 3, 4].filter((each) => each !== leader);
    await whileWriting([1, 2, 3], async () => {
      await join(4, [1, 2, 3, 4]);
      await areComplete([1, 2, 3, 4]);
      await changeMembers([1, 2, 3, 4], [leader]);
      await settle(`member ${leader} is removed`, [1, 2, 3, 4], async () => {
        const found = await leaderIn(others);
        return found !== undefined && !found.report.members.includes(leader);
      });
      await machineOf(leader).stop("SIGKILL");
      await machineOf(leader).remove();
      machines.delete(leader);
      await changeMembers(others);
      await areComplete(others);
    });
    await expectNothingLost(4);
  });

  it("take a member back whose disk was lost", async () => {
    const numbers = [...machines.keys()].toSorted((a, b) => a - b);
    const machine = machineOf(4);
    await machine.stop("SIGKILL");
    await machine.driver.peers?.join(machine.instance, machine.signal);
    await machine.bootstrap();
    await start(4);
    await areComplete(numbers);
    await expectNothingLost(4);
  });

  const present = () => [...machines.keys()].toSorted((a, b) => a - b);
  const others = (numbers: readonly number[]) => present().filter((each) => !numbers.includes(each));
  /** Waits until the member's check has this status, and resolves with it; a slow member reports none. */
  const quorumIs = (number: number, status: string) =>
    waitUntil(
      `quorum of member ${number} is ${status}`,
      async () => {
        const { driver, instance } = machineOf(number);
        const { checks } = await driver.observe(instance, longSignal());
        const quorum = checks.find(({ name }) => name === "quorum");
        return quorum?.status === status ? quorum : undefined;
      },
      { withinMs, describe: async () => JSON.stringify(await Promise.all(present().map(reportOf))) },
    );
  /** Writes as a user. As clients do, it repeats a request that the front itself answers. */
  const writeAsUser = async (number: number, path: string) => {
    const client = openClient(machineOf(number), { user: "app_user", password: "secret" });
    try {
      return await waitUntil(
        `the front of member ${number} forwards`,
        async () => {
          const { status, body } = await client.send("PUT", path, { value: 1 });
          const { type = "" } = (body as { error?: { type?: string } }).error ?? {};
          return type === "unavailable_exception" ? undefined : { status, type };
        },
        { withinMs },
      );
    } finally {
      await client.close();
    }
  };

  it("refuse writes without a majority, report it, and write again when it is back", async () => {
    const stopped = present().slice(0, 2);
    const remaining = others(stopped);
    for (const number of stopped) await machineOf(number).stop("SIGKILL");
    for (const number of remaining) {
      expect(await quorumIs(number, "unhealthy")).toMatchObject({ reason: "the members have no leader" });
      const refused = await writeAsUser(number, `/${index}/_doc/refused?timeout=1s`);
      expect(refused).toEqual({ status: 503, type: "cluster_block_exception" });
    }
    await Promise.all(stopped.map(start));
    await areComplete(present());
    await waitUntil("a document is written", () => write(remaining), { withinMs });
    for (const number of present()) {
      await expectNothingLost(number);
      expect((await idsIn(machineOf(number))).has("refused"), `member ${number}`).toBe(false);
    }
  });

  it("refuse users' writes while the disk of any one is nearly full, and lose nothing", async () => {
    const [full = 1, other = 1] = present();
    const { driver, instance } = machineOf(full);
    await driver.reload({ ...instance, writesBlocked: true }, longSignal());
    for (const number of present())
      expect(await writeAsUser(number, `/${index}/_doc/full`)).toEqual({ status: 403, type: "security_exception" });
    await driver.reload(machineOf(other).instance, longSignal());
    expect((await writeAsUser(other, `/${index}/_doc/full`)).status).toBe(403);
    await expectNothingLost(full);
    await driver.reload(instance, longSignal());
    for (const number of present())
      expect((await writeAsUser(number, `/${index}/_doc/free-${number}`)).status, `member ${number}`).toBe(201);
    await expectNothingLost(other);
    expect((await idsIn(machineOf(other))).has("full")).toBe(false);
  });

  it("of which there are five write while two are lost, also the one that leads", async () => {
    while (present().length < 5) {
      const next = Math.max(...present()) + 1;
      await join(next, [...present(), next]);
      const hasJoined = async () => (await leaderIn(present()))?.report.members.join() === present().join();
      await settle(`member ${next} joined`, present(), hasJoined);
    }
    const five = present();
    await areComplete(five);
    await callAt(five[0] ?? 1, { method: "PUT", path: `/${index}/_settings`, body: { number_of_replicas: 2 } });
    await areComplete(five);
    const { number: leader } = await waitUntil("one leads", () => leaderIn(five), { withinMs });
    const lost = [leader, ...others([leader])].slice(0, 2);
    const remaining = others(lost);
    await whileWriting(remaining, async () => {
      for (const number of lost) await machineOf(number).stop("SIGKILL");
      await waitUntil("another one leads", () => leaderIn(remaining), { withinMs });
      const before = acknowledged.length;
      await waitUntil("writes continue", () => acknowledged.length > before + 20, { withinMs });
      for (const number of remaining) await quorumIs(number, "healthy");
      await Promise.all(lost.map(start));
      await areComplete(five);
    });
    for (const number of five) await expectNothingLost(number);
  });
});
