import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { callEtcd, encoded } from "@holdfast/testing/engines/etcd/api.ts";
import { connectEtcd } from "@holdfast/testing/engines/etcd/ledger.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { killImmediately } from "@holdfast/testing/platform/platform-processes.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { etcd } from "./peers/peers-engine.ts";
import { createPeersUnderTest, longMs } from "./peers/peers-under-test.ts";

const skipped = await requireRecipes(import.meta.filename, "trixie");

describe.skipIf(skipped)("a cluster of peers on three hosts", () => {
  const fixture = createPeersUnderTest(etcd);
  const { form, path, machines, machineOf, engineOf, killControllers, leaderIn, writesContinue, isComplete, ended } =
    fixture;
  beforeAll(fixture.start, longMs);
  afterAll(fixture.remove);

  /** Maximum number of members whose engine was down at the same time during the work. */
  async function maxDown(nodeIds: readonly string[], work: () => Promise<unknown>): Promise<number> {
    let max = 0;
    let isOver = false;
    const done = work().finally(() => {
      isOver = true;
    });
    // The work is awaited below.
    done.catch(() => undefined);
    await waitUntil(
      "the work is done",
      () => {
        const all = machines();
        const up = nodeIds.filter((nodeId) => all.find((each) => each.id === nodeId)?.engine !== undefined);
        max = Math.max(max, nodeIds.length - up.length);
        return isOver;
      },
      { withinMs: longMs, everyMs: 100 },
    );
    await done;
    return max;
  }

  /** Requests a restart; returns the id of its operation. */
  async function restart(): Promise<string> {
    const { json } = expectStatus(await fixture.platform.rest.post<ServiceJson>(path("/restart")), 202);
    return json.operation?.id ?? "";
  }

  const createDatabase = async (name: string) =>
    expectStatus(await fixture.platform.rest.post(path("/databases"), { name }), 201);

  it("is formed once by its three first members, under names that resolve to all of them", {
    timeout: longMs,
  }, async () => {
    const request = { database_type: "etcd", plan_name: "tier-1", storage_size_gb: 1, node_count: 2, name: "pair" };
    const refused = await fixture.platform.rest.post<ProblemJson>("/managed-services", request);
    expect(expectStatus(refused, 422).json.detail).toContain("1, 3, 4, 5 nodes");
    const service = await form();
    expect(service.primary_node_id).toBeNull();
    expect([fixture.platform, ...fixture.others.values()].map((host) => host.processes().machines.length)).toEqual([
      1, 1, 1,
    ]);
    for (const { id: nodeId, hostname } of service.nodes) {
      const { address } = await connectEtcd(fixture.platform, fixture.connection, hostname);
      expect(await resolveName(fixture.platform.admin.dns_server, fixture.connection.host)).toContain(address);
      const status = await fixture.platform.rest.get(path(`/nodes/${nodeId}/replication-status`));
      expect(expectStatus(status, 200).json).toMatchObject({ connected: true, sync_state: "streaming" });
    }
    const [node] = service.nodes;
    const failover = await fixture.platform.rest.post<ProblemJson>(path(`/nodes/${node?.id}/failover`), {});
    expect(expectStatus(failover, 422).json.detail).toContain("leadership moves by itself");
    await createDatabase("first");
  });

  it("continues when its leader's engine, an agent, a machine or the controllers are killed", {
    timeout: longMs,
  }, async () => {
    const leader = leaderIn(await fixture.services.get(fixture.id));
    killImmediately(engineOf(leader) ?? 0);
    await writesContinue();
    await createDatabase("second");
    const after = await isComplete([1, 2, 3]);
    killImmediately(machineOf(leaderIn(after))?.agent ?? 0);
    killControllers();
    await writesContinue();
    await isComplete([1, 2, 3]);
    const [victim] = after.nodes.filter((node) => node.id !== leaderIn(after));
    killImmediately(machineOf(victim?.id ?? "")?.launcher ?? 0);
    await writesContinue();
    await isComplete([1, 2, 3]);
    await createDatabase("third");
    const { json } = await fixture.platform.rest.get<{ databases: { name: string }[] }>(path("/databases"));
    expect(json.databases.map(({ name }) => name).toSorted()).toEqual(["first", "second", "third"]);
  });

  it("restarts one member at a time, though a controller is killed", { timeout: longMs }, async () => {
    const { nodes } = await fixture.services.get(fixture.id);
    const ids = nodes.map((node) => node.id);
    const before = ids.map(engineOf);
    const max = await maxDown(ids, async () => {
      const operationId = await restart();
      const isRestarting = async () => (await fixture.maintenance.operation(operationId)).step === "RestartMembers";
      await waitUntil("members are restarted", isRestarting);
      const over = ended(operationId);
      await waitUntil("a member has restarted", () => ids.map(engineOf).some((pid, index) => pid !== before[index]));
      killControllers();
      expect(await over).toMatchObject({ status: "completed", error: null });
    });
    expect(max).toBeLessThanOrEqual(1);
    expect(ids.map(engineOf).filter((pid, index) => pid === before[index])).toEqual([]);
    await isComplete([1, 2, 3]);
  });

  it("restarts no other member while one does not respond, and reports that", { timeout: longMs }, async () => {
    const service = await fixture.services.get(fixture.id);
    const [silent, ...rest] = service.nodes.toSorted((a) => (a.id === leaderIn(service) ? 1 : -1));
    const frozen = engineOf(silent?.id ?? "") ?? 0;
    const before = rest.map((node) => engineOf(node.id));
    killImmediately(frozen, "SIGSTOP");
    try {
      await waitUntil("its engine is out of the majority", async () => {
        const { health } = await fixture.services.get(fixture.id);
        return health.status !== "healthy";
      });
      const operationId = await restart();
      await waitUntil(
        "the operation waits for the member",
        async () => (await fixture.maintenance.operation(operationId)).step === "WaitForMember",
        { describe: () => fixture.services.describe(fixture.id) },
      );
      const { health } = await fixture.services.get(fixture.id);
      expect(health.checks).toContainEqual(expect.objectContaining({ name: "quorum", status: "degraded" }));
      expect(rest.map((node) => engineOf(node.id))).toEqual(before);
      await writesContinue();
      killImmediately(frozen, "SIGCONT");
      expect(await ended(operationId)).toMatchObject({ status: "completed" });
    } finally {
      killImmediately(frozen, "SIGCONT");
    }
    await isComplete([1, 2, 3]);
  });

  it("accepts no write without a majority, and accepts writes again with one", { timeout: longMs }, async () => {
    const service = await fixture.services.get(fixture.id);
    const [survivor, ...rest] = service.nodes.map((node) => engineOf(node.id) ?? 0);
    const target = await connectEtcd(fixture.platform, fixture.connection, service.nodes[0]?.hostname);
    for (const pid of rest) killImmediately(pid, "SIGSTOP");
    try {
      const put = { key: encoded("minority"), value: encoded("x") };
      await expect(callEtcd(target, "kv/put", put, AbortSignal.timeout(10_000))).rejects.toThrow();
      await waitUntil("the service reports it", async () => {
        const { health } = await fixture.services.get(fixture.id);
        return health.checks.some((check) => check.name === "quorum" && check.status === "unhealthy");
      });
      expect(engineOf(service.nodes[0]?.id ?? "")).toBe(survivor);
    } finally {
      for (const pid of rest) killImmediately(pid, "SIGCONT");
    }
    await isComplete([1, 2, 3]);
  });

  it("gets another image one member at a time, though a controller is killed", { timeout: longMs }, async () => {
    const ids = (await fixture.services.get(fixture.id)).nodes.map((node) => node.id);
    const before = ids.map(engineOf);
    await fixture.images.choose(fixture.images.valid);
    await fixture.maintenance.pending(fixture.id, fixture.images.valid);
    const max = await maxDown(ids, async () => {
      const { json } = expectStatus(await fixture.maintenance.apply(fixture.id), 202);
      await waitUntil("a member is down", () => ids.map(engineOf).some((pid) => pid === undefined));
      killControllers();
      expect(await ended(json.id)).toMatchObject({ status: "completed", error: null });
    });
    expect(max).toBeLessThanOrEqual(1);
    expect(ids.map(engineOf).filter((pid, index) => pid === before[index])).toEqual([]);
    expect(await fixture.maintenance.get(fixture.id)).toMatchObject({ image: fixture.images.valid, updates: [] });
    await isComplete([1, 2, 3]);
  });

  it("has lost no acknowledged write", { timeout: longMs }, async () => {
    await fixture.stopWriting();
    expect(await fixture.writer.missing()).toEqual([]);
  });
});
