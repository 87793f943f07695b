import { existsSync } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { OperationJson } from "@holdfast/testing/api/service-json.ts";
import { serviceKafka } from "@holdfast/testing/engines/kafka-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { pathInside } from "@holdfast/testing/machines/machine-inside.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { asRoot } from "@holdfast/testing/platform/platform-software.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { longMs, startWrittenBus, type WrittenBus } from "./kafka/written-bus.ts";

const skip = await requireRecipes(import.meta.filename, "kafka");

/** Brokers are paused, and agents, engines and controllers killed at the steps of each change of members. */
describe.skipIf(skip !== undefined)("a Kafka of three brokers whose processes fail", { timeout: longMs }, () => {
  let bus: WrittenBus;

  beforeAll(async () => {
    bus = await startWrittenBus(3);
    await bus.isComplete(3);
  }, longMs);
  afterAll(() => bus?.remove(), longMs);

  const get = () => bus.services.get(bus.id);
  const wait = () => ({ withinMs: longMs, describe: bus.describe });
  const operation = async (id: string) =>
    expectStatus(await bus.platform.rest.get<OperationJson>(`/operations/${id}`), 200).json;
  const inStep = (id: string, ...steps: string[]) =>
    waitUntil(`its step is ${steps.join(" or ")}`, async () => steps.includes((await operation(id)).step ?? ""), {
      ...wait(),
      everyMs: 20,
    });
  const ended = (id: string) =>
    waitUntil(
      "the operation has ended",
      async () => {
        const now = await operation(id);
        return now.finished_at !== null && now;
      },
      wait(),
    );
  const startedBy = async () => (await get()).operation?.id ?? "";
  const killAgent = (nodeId: string) =>
    waitUntil("its agent was killed", () => killImmediately(bus.machineOf(nodeId)?.agent ?? Number.NaN), {
      ...wait(),
      everyMs: 5,
    });

  /** Stops the processes without ending them while the work runs. */
  async function whilePaused(pids: readonly number[], work: () => Promise<unknown>): Promise<void> {
    for (const pid of pids) killImmediately(pid, "SIGSTOP");
    try {
      await work();
    } finally {
      for (const pid of pids) killImmediately(pid, "SIGCONT");
    }
  }

  it("takes writes while its leader is paused, and restarts no other broker until it responds", async () => {
    const service = await get();
    const leader = bus.leaderIn(service);
    const others = service.nodes.map(({ id }) => id).filter((id) => id !== leader);
    const before = others.map(bus.engineOf);
    let restart = "";
    await whilePaused([bus.engineOf(leader)], async () => {
      await bus.writesContinue();
      await waitUntil("its health reports it", async () => (await get()).health.status !== "healthy", wait());
      const { json } = expectStatus(
        await bus.platform.rest.post<{ operation: OperationJson }>(bus.path("/restart")),
        202,
      );
      restart = json.operation.id;
      await inStep(restart, "WaitForMember");
      expect(others.map(bus.engineOf)).toEqual(before);
      await bus.writesContinue();
    });
    expect(await ended(restart)).toMatchObject({ status: "completed", error: null });
    await bus.isComplete(3);
  });

  it("acknowledges no write while two of three are paused, and takes writes again afterwards", async () => {
    const { nodes } = await get();
    const [, ...paused] = nodes.map(({ id }) => bus.engineOf(id));
    await whilePaused(paused, async () => {
      const isReported = async () => {
        const checks = (await get()).health.checks.filter(({ name }) => name === "quorum");
        const statuses = checks.map(({ status }) => status);
        return statuses.includes("unhealthy") && !statuses.includes("healthy");
      };
      await waitUntil("its health reports it", isReported, wait());
      const { connection, password } = await bus.open();
      // The name of the broker that runs: the service's name also has the addresses of the others.
      const running = { connection: { ...connection, host: nodes[0]?.hostname ?? "" }, password };
      const producer = serviceKafka(bus.platform, running).producer({ retry: { retries: 0 } });
      const send = async () => {
        await producer.connect();
        await producer.send({ topic: "ledger", acks: -1, timeout: 3_000, messages: [{ value: "-1" }] });
      };
      const before = bus.writer.acknowledged;
      await expect(send()).rejects.toThrow();
      await producer.disconnect();
      expect(bus.writer.acknowledged).toBe(before);
    });
    await bus.isComplete(3);
  });

  it("restarts one broker at a time, each partition in sync, while agents and controllers are killed", async () => {
    const ids = (await get()).nodes.map(({ id }) => id);
    const before = new Map(ids.map((id) => [id, bus.engineOf(id)]));
    const hasRestarted = (id: string) => ![0, before.get(id)].includes(bus.engineOf(id));
    const least = await bus.leastInSync(async () => {
      expectStatus(await bus.platform.rest.post(bus.path("/restart")), 202);
      const restart = await startedBy();
      const down = await waitUntil("a broker is down", () => ids.find((id) => bus.engineOf(id) === 0), {
        ...wait(),
        everyMs: 5,
      });
      await killAgent(down);
      bus.killControllers();
      await waitUntil("two brokers have restarted", () => ids.filter(hasRestarted).length >= 2, wait());
      const next = ids.find((id) => !hasRestarted(id)) ?? ids[0] ?? "";
      await killAgent(next);
      bus.killControllers();
      expect(await ended(restart)).toMatchObject({ status: "completed", error: null });
    });
    expect(least).toBeGreaterThanOrEqual(2);
    expect(ids.filter((id) => !hasRestarted(id))).toEqual([]);
    await bus.isComplete(3);
  });

  it("takes writes again after a stop and a start of all brokers", async () => {
    expectStatus(await bus.platform.rest.post(bus.path("/stop")), 202);
    await bus.services.settled(bus.id, "Stopped", longMs);
    expect((await get()).nodes.map(({ id }) => bus.engineOf(id))).toEqual([0, 0, 0]);
    expectStatus(await bus.platform.rest.post(bus.path("/start")), 202);
    await bus.isComplete(3);
  });

  it.skipIf(!asRoot)("fills its leader again whose disk was lost, while writes continue", async () => {
    const leader = bus.leaderIn(await get());
    const agent = bus.machineOf(leader)?.agent ?? Number.NaN;
    const data = pathInside(agent, "/data");
    await whilePaused([agent], async () => {
      killImmediately(bus.engineOf(leader));
      await waitUntil("its engine has ended", () => bus.engineOf(leader) === 0, wait());
      for (const name of await readdir(data)) await rm(join(data, name), { recursive: true });
      // The paused agent must not see the empty disk.
      killImmediately(agent);
    });
    await bus.writesContinue();
    const hasLogs = () => existsSync(pathInside(bus.machineOf(leader)?.agent, "/data/kafka/logs/meta.properties"));
    await waitUntil("it has formatted its disk", hasLogs, wait());
    await waitUntil("its engine runs", () => bus.engineOf(leader) !== 0, wait());
    await bus.isComplete(3);
    expect(await bus.placementOf("ledger")).toEqual({ brokers: [1, 2, 3], inSync: 3 });
  });

  it("gets a fourth broker although each part is killed while it joins and gets its partitions", async () => {
    const before = (await get()).nodes.map(({ id }) => id);
    expectStatus(await bus.platform.rest.post(bus.path("/nodes"), { role: "replica" }), 202);
    const added = () => bus.platform.processes().machines.find(({ id }) => !before.includes(id));
    const addedId = await waitUntil("its agent was killed", () => {
      const machine = added();
      return machine?.agent !== undefined && killImmediately(machine.agent) && machine.id;
    });
    bus.killControllers();
    await waitUntil("its engine was killed", () => killImmediately(added()?.engine ?? Number.NaN), {
      ...wait(),
      everyMs: 5,
    });
    const hasPartitions = async () => (await bus.placementOf("ledger")).brokers.includes(4);
    await waitUntil("partitions move to it", hasPartitions, { ...wait(), everyMs: 20 });
    await killAgent(bus.leaderIn(await get()));
    await killAgent(addedId);
    bus.killControllers();
    await bus.isComplete(4);
    await waitUntil(
      "its partitions are complete",
      async () => {
        const { brokers, inSync } = await bus.placementOf("ledger");
        return brokers.join() === "1,2,3,4" && inSync === 3;
      },
      wait(),
    );
    await bus.isComplete(4);
  });

  it("loses a broker although each part is killed while it is drained and removed", async () => {
    const service = await get();
    const leader = bus.leaderIn(service);
    const leaving = service.nodes.map(({ id }) => id).find((id) => id !== leader) ?? "";
    expectStatus(await bus.platform.rest.delete(bus.path(`/nodes/${leaving}`)), 202);
    const removal = await startedBy();
    await inStep(removal, "DrainMember");
    await killAgent(leader);
    await killAgent(leaving);
    bus.killControllers();
    await inStep(removal, "RemoveServer", "DrainMember");
    killImmediately(bus.engineOf(leader));
    bus.killControllers();
    expect(await ended(removal)).toMatchObject({ status: "completed", error: null });
    const three = await bus.isComplete(3);
    expect(three.nodes.map(({ id }) => id)).not.toContain(leaving);
    expect((await bus.placementOf("ledger")).inSync).toBe(3);
  });

  it("has lost no acknowledged record", async () => {
    expect(await bus.lost()).toEqual([]);
    expect(bus.writer.acknowledged).toBeGreaterThan(100);
  });
});
