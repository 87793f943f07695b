import { type Host, HostService } from "@holdfast/proto/holdfast/admin/v1/host_pb.ts";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { AcknowledgedWriter } from "../faults/acknowledged-writer.ts";
import { type GrpcCalls, withGrpc } from "@holdfast/testing/api/grpc-calls.ts";
import type { ConnectionJson, OperationJson, ProblemJson, ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { callEtcd, encoded } from "@holdfast/testing/engines/etcd/api.ts";
import { clusterNames, connectEtcd, writeKeys } from "@holdfast/testing/engines/etcd/ledger.ts";
import { registryLines } from "@holdfast/testing/engines/etcd/registry-lines.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { type ChangingImages, createChangingImages } from "@holdfast/testing/machines/changing-images.ts";
import {
  createMaintenanceRequests,
  type MaintenanceRequests,
} from "@holdfast/testing/machines/maintenance-requests.ts";
import { resolveName } from "@holdfast/testing/network/dns-query.ts";
import { type ExtendedCheckout, extendCheckout } from "@holdfast/testing/platform/extended-checkout.ts";
import { freePorts } from "@holdfast/testing/platform/free-ports.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { lastLogLines } from "@holdfast/testing/platform/platform-logs.ts";
import { killAtOnce, type MachineProcesses } from "@holdfast/testing/platform/platform-processes.ts";
import { newSecondHost, type SecondHost } from "@holdfast/testing/platform/second-host.ts";
import { createServices, expectStatus, type Services } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";

// etcd as a managed service: an engine of the tests whose members elect their leader, added to a copy of the checkout
// as CONTRIBUTING has it. The controller, the hosts, the agents and the quorum are the real ones.

const longMs = 360_000;
const skipped = await requireRecipes(import.meta.filename, "trixie");

describe.skipIf(skipped)("a cluster of peers on three hosts", () => {
  const writing = new AbortController();
  let checkout: ExtendedCheckout;
  let images: ChangingImages;
  let platform: Platform;
  const others = new Map<string, SecondHost>();
  let services: Services;
  let maintenance: MaintenanceRequests;
  let writer: AcknowledgedWriter;
  let connection: ConnectionJson;
  let id: string;

  beforeAll(async () => {
    checkout = extendCheckout(registryLines);
    images = createChangingImages({ looksOlder: true });
    const environment = { HOLDFAST_CACHE: images.cache };
    platform = await startPlatform({ checkout: checkout.directory, environment });
    services = createServices(platform);
    maintenance = createMaintenanceRequests(platform, services);
    for (const hostId of ["second", "third"]) await addHost(hostId, environment);
  }, longMs);
  afterAll(async () => {
    writing.abort();
    await Promise.all([...others.values()].map((host) => host.remove()));
    await platform?.remove();
    images?.close();
    checkout?.remove();
  });

  const hosts = <T>(run: (rpcs: GrpcCalls<typeof HostService>) => Promise<T>) =>
    withGrpc({ url: platform.admin.grpc_url, ca: platform.ca, authorization: platform.operator }, HostService, run);
  const hostIs = (hostId: string, test: (found: Host) => boolean) =>
    waitUntil(`${hostId} is as it should be`, () => hosts(async (rpcs) => test(await rpcs.getHost({ hostId }))), {
      everyMs: 250,
      withinMs: longMs,
      describe: () => lastLogLines(platform.directory, 20),
    });

  async function addHost(hostId: string, environment: Record<string, string>): Promise<void> {
    const host = newSecondHost([], checkout.directory);
    others.set(hostId, host);
    const [port] = await freePorts(1);
    const { joinFile } = await hosts((rpcs) => rpcs.addHost({ hostId, zone: "local", address: `127.0.0.1:${port}` }));
    await host.start(joinFile, [], { ...environment, HOLDFAST_SPARES: "0" });
    await hostIs(hostId, ({ state }) => state === "ready");
  }

  const path = (rest = "") => `/managed-services/${id}${rest}`;
  const machines = (): MachineProcesses[] =>
    [platform, ...others.values()].flatMap((host) => host.processes().machines);
  const machineOf = (nodeId: string) => machines().find((each) => each.id === nodeId);
  const engineOf = (nodeId: string) => machineOf(nodeId)?.engine;
  const killControllers = () => {
    for (const pid of platform.processes().controllers) killAtOnce(pid);
  };
  const leaderIn = ({ nodes }: ServiceJson) => nodes.find(({ role }) => role === "primary")?.id ?? "";

  async function writesGoOn(): Promise<void> {
    const before = writer.acknowledged;
    await waitUntil("writes go on", () => writer.acknowledged > before + 5);
  }

  /** The service with these members, each in sync, under its names, with writes. */
  async function isComplete(numbers: readonly number[]): Promise<ServiceJson> {
    const names = numbers.map((number) => `m-${number}`);
    const isIt = async () => {
      const service = await services.settled(id, "Running", longMs);
      const running = service.nodes.filter(({ status }) => status === "Running").length;
      return (
        service.nodes.length === names.length &&
        running === names.length &&
        service.health.status === "healthy" &&
        service
      );
    };
    const service = await waitUntil(`members ${numbers.join()} are in sync`, isIt, {
      withinMs: longMs,
      everyMs: 250,
      describe: () => services.describe(id),
    });
    expect(await clusterNames(platform, connection)).toEqual(names);
    expect(service.nodes.map(({ role }) => role).toSorted()).toEqual(
      names.map((_, index) => (index === 0 ? "primary" : "replica")),
    );
    await waitUntil("the name leads to all members", async () => {
      const addresses = await resolveName(platform.admin.dns_server, connection.host);
      return addresses.length === numbers.length;
    });
    await writesGoOn();
    return service;
  }

  /** The most members whose engine was down at once during the work. */
  async function mostDown(nodeIds: readonly string[], work: () => Promise<unknown>): Promise<number> {
    let most = 0;
    let isOver = false;
    const done = work().finally(() => {
      isOver = true;
    });
    // It is awaited below.
    done.catch(() => undefined);
    await waitUntil(
      "the work is done",
      () => {
        const all = machines();
        const up = nodeIds.filter((nodeId) => all.find((each) => each.id === nodeId)?.engine !== undefined);
        most = Math.max(most, nodeIds.length - up.length);
        return isOver;
      },
      { withinMs: longMs, everyMs: 100 },
    );
    await done;
    return most;
  }

  const ended = (operationId: string): Promise<OperationJson> =>
    waitUntil(
      "the operation has ended",
      async () => {
        const now = await maintenance.operation(operationId);
        return now.finished_at !== null && now;
      },
      { withinMs: longMs, everyMs: 100, describe: () => services.describe(id) },
    );

  /** Requests a restart; returns the id of its operation. */
  async function restart(): Promise<string> {
    const { json } = expectStatus(await platform.rest.post<ServiceJson>(path("/restart")), 202);
    return json.operation?.id ?? "";
  }

  const createDatabase = async (name: string) =>
    expectStatus(await platform.rest.post(path("/databases"), { name }), 201);

  it("is formed once by its three first members, under names that lead to all of them", {
    timeout: longMs,
  }, async () => {
    const request = { database_type: "etcd", plan_name: "tier-1", storage_size_gb: 1, node_count: 2, name: "pair" };
    const refused = await platform.rest.post<ProblemJson>("/managed-services", request);
    expect(expectStatus(refused, 422).json.detail).toContain("1, 3, 4, 5 nodes");
    const parameters = { "drain-seconds": "4" };
    ({ id } = await services.create("orders", { database_type: "etcd", node_count: 3, parameters }));
    await services.settled(id, "Running", longMs);
    ({ json: connection } = expectStatus(await platform.rest.get<ConnectionJson>(path("/connection")), 200));
    writer = writeKeys(platform, connection, writing.signal);
    const service = await isComplete([1, 2, 3]);
    expect(service.primary_node_id).toBe("");
    expect([platform, ...others.values()].map((host) => host.processes().machines.length)).toEqual([1, 1, 1]);
    for (const { id: nodeId, hostname } of service.nodes) {
      const { address } = await connectEtcd(platform, connection, hostname);
      expect(await resolveName(platform.admin.dns_server, connection.host)).toContain(address);
      const status = await platform.rest.get(path(`/nodes/${nodeId}/replication-status`));
      expect(expectStatus(status, 200).json).toMatchObject({ connected: true, sync_state: "streaming" });
    }
    const [node] = service.nodes;
    const failover = await platform.rest.post<ProblemJson>(path(`/nodes/${node?.id}/failover`), {});
    expect(expectStatus(failover, 422).json.detail).toContain("leadership moves by itself");
    await createDatabase("first");
  });

  it("goes on when its leader's engine, an agent, a machine or the controllers are killed", {
    timeout: longMs,
  }, async () => {
    const leader = leaderIn(await services.get(id));
    killAtOnce(engineOf(leader) ?? 0);
    await writesGoOn();
    await createDatabase("second");
    const after = await isComplete([1, 2, 3]);
    killAtOnce(machineOf(leaderIn(after))?.agent ?? 0);
    killControllers();
    await writesGoOn();
    await isComplete([1, 2, 3]);
    const [victim] = after.nodes.filter((node) => node.id !== leaderIn(after));
    killAtOnce(machineOf(victim?.id ?? "")?.launcher ?? 0);
    await writesGoOn();
    await isComplete([1, 2, 3]);
    await createDatabase("third");
    const { json } = await platform.rest.get<{ databases: { name: string }[] }>(path("/databases"));
    expect(json.databases.map(({ name }) => name).toSorted()).toEqual(["first", "second", "third"]);
  });

  it("restarts one member at a time, though a controller is killed", { timeout: longMs }, async () => {
    const { nodes } = await services.get(id);
    const ids = nodes.map((node) => node.id);
    const before = ids.map(engineOf);
    const most = await mostDown(ids, async () => {
      const operationId = await restart();
      const isRestarting = async () => (await maintenance.operation(operationId)).step === "RestartMembers";
      await waitUntil("members are restarted", isRestarting);
      const over = ended(operationId);
      await waitUntil("a member has restarted", () => ids.map(engineOf).some((pid, index) => pid !== before[index]));
      killControllers();
      expect(await over).toMatchObject({ status: "completed", error: null });
    });
    expect(most).toBeLessThanOrEqual(1);
    expect(ids.map(engineOf).filter((pid, index) => pid === before[index])).toEqual([]);
    await isComplete([1, 2, 3]);
  });

  it("restarts no other member while one does not answer, and shows that", { timeout: longMs }, async () => {
    const service = await services.get(id);
    const [silent, ...rest] = service.nodes.toSorted((a) => (a.id === leaderIn(service) ? 1 : -1));
    const frozen = engineOf(silent?.id ?? "") ?? 0;
    const before = rest.map((node) => engineOf(node.id));
    killAtOnce(frozen, "SIGSTOP");
    try {
      await waitUntil("its engine is out of the majority", async () => {
        const { health } = await services.get(id);
        return health.status !== "healthy";
      });
      const operationId = await restart();
      await waitUntil(
        "the operation waits for the member",
        async () => (await maintenance.operation(operationId)).step === "WaitForMember",
        { describe: () => services.describe(id) },
      );
      const { health } = await services.get(id);
      expect(health.checks).toContainEqual(expect.objectContaining({ name: "quorum", status: "degraded" }));
      expect(rest.map((node) => engineOf(node.id))).toEqual(before);
      await writesGoOn();
      killAtOnce(frozen, "SIGCONT");
      expect(await ended(operationId)).toMatchObject({ status: "completed" });
    } finally {
      killAtOnce(frozen, "SIGCONT");
    }
    await isComplete([1, 2, 3]);
  });

  it("accepts no write without a majority, and goes on with one", { timeout: longMs }, async () => {
    const service = await services.get(id);
    const [one, ...rest] = service.nodes.map((node) => engineOf(node.id) ?? 0);
    const target = await connectEtcd(platform, connection, service.nodes[0]?.hostname);
    for (const pid of rest) killAtOnce(pid, "SIGSTOP");
    try {
      const put = { key: encoded("minority"), value: encoded("x") };
      await expect(callEtcd(target, "kv/put", put, AbortSignal.timeout(10_000))).rejects.toThrow();
      await waitUntil("the service reports it", async () => {
        const { health } = await services.get(id);
        return health.checks.some((check) => check.name === "quorum" && check.status === "unhealthy");
      });
      expect(engineOf(service.nodes[0]?.id ?? "")).toBe(one);
    } finally {
      for (const pid of rest) killAtOnce(pid, "SIGCONT");
    }
    await isComplete([1, 2, 3]);
  });

  it("gets another image one member at a time, though a controller is killed", { timeout: longMs }, async () => {
    const ids = (await services.get(id)).nodes.map((node) => node.id);
    const before = ids.map(engineOf);
    await images.choose(images.valid);
    await maintenance.pending(id, images.valid);
    const most = await mostDown(ids, async () => {
      const { json } = expectStatus(await maintenance.apply(id), 202);
      await waitUntil("a member is down", () => ids.map(engineOf).some((pid) => pid === undefined));
      killControllers();
      expect(await ended(json.id)).toMatchObject({ status: "completed", error: null });
    });
    expect(most).toBeLessThanOrEqual(1);
    expect(ids.map(engineOf).filter((pid, index) => pid === before[index])).toEqual([]);
    expect(await maintenance.get(id)).toMatchObject({ image: images.valid, updates: [] });
    await isComplete([1, 2, 3]);
  });

  it("replaces the member of a lost host by a new one, and then removes the lost one", {
    timeout: longMs,
  }, async () => {
    const { nodes } = await services.get(id);
    const lost = others.get("third");
    const gone = nodes.find((node) => lost?.processes().machines.some((machine) => machine.id === node.id));
    for (const pid of lost?.processes().all ?? []) killAtOnce(pid);
    await writesGoOn();
    await hostIs("third", ({ state }) => state === "unreachable");
    const lostOwners = [{ kind: "managed-service", id }];
    await hosts((rpcs) => rpcs.removeHost({ hostId: "third", destroyed: true, lostOwners }));
    await waitUntil("a new member exists", async () => (await services.get(id)).nodes.length === 4, {
      withinMs: longMs,
      describe: () => services.describe(id),
    });
    killControllers();
    const numbers = nodes.flatMap((node, index) => (node === gone ? [] : [index + 1]));
    const after = await isComplete([...numbers, 4]);
    expect(after.nodes.map((node) => node.id)).not.toContain(gone?.id);
    const [move] = (await services.operations(id)).filter(({ type }) => type === "move_node");
    expect(move).toMatchObject({ status: "completed", error: null });
  });

  it("grows to five, one member after the other, though an agent, an engine and controllers are killed", {
    timeout: longMs,
  }, async () => {
    const before = (await services.get(id)).nodes.map((node) => node.id);
    const add = async () => expectStatus(await platform.rest.post(path("/nodes"), { role: "replica" }), 202);
    await add();
    await waitUntil("the new member's agent runs", () => {
      const added = machines().find((each) => !before.includes(each.id));
      return added?.agent !== undefined && killAtOnce(added.agent);
    });
    killControllers();
    const four = await services.settled(id, "Running", longMs);
    expect(four.nodes).toHaveLength(4);
    await add();
    killControllers();
    await waitUntil("the new member's engine runs", () => {
      const added = machines().find((each) => !four.nodes.some((node) => node.id === each.id));
      return added?.engine !== undefined && killAtOnce(added.engine);
    });
    const five = await services.settled(id, "Running", longMs);
    const names = await clusterNames(platform, connection);
    expect(names).toHaveLength(5);
    expect(five.nodes).toHaveLength(5);
    await isComplete(names.map((name) => Number(name.slice(2))));
    const sixth = await platform.rest.post<ProblemJson>(path("/nodes"), { role: "replica" });
    expect(expectStatus(sixth, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("shrinks to three with its leader among those that leave, each drained first", { timeout: longMs }, async () => {
    for (const count of [4, 3]) {
      const service = await services.get(id);
      const leader = leaderIn(service);
      expectStatus(await platform.rest.delete(path(`/nodes/${leader}`)), 202);
      const { operation: started } = await services.get(id);
      await waitUntil(
        "the drain is shown",
        async () => (await maintenance.operation(started?.id ?? "")).step === "DrainMember",
        { describe: () => services.describe(id) },
      );
      killControllers();
      const other = service.nodes.find((node) => node.id !== leader)?.id ?? "";
      // First the agent of the member that leaves, then the engine of a member that stays.
      killAtOnce((count === 4 ? machineOf(leader)?.agent : engineOf(other)) ?? 0);
      expect((await ended(started?.id ?? "")).operation).toMatchObject({ status: "completed", error: null });
      const after = await services.settled(id, "Running", longMs);
      expect(after.nodes.map((node) => node.id)).not.toContain(leader);
      expect(after.nodes).toHaveLength(count);
      await isComplete((await clusterNames(platform, connection)).map((name) => Number(name.slice(2))));
    }
    const { nodes } = await services.get(id);
    const refused = await platform.rest.delete<ProblemJson>(path(`/nodes/${nodes[0]?.id}`));
    expect(expectStatus(refused, 422).json.detail).toContain("1, 3, 4, 5 nodes");
  });

  it("has its members moved away from a host that is drained", { timeout: longMs }, async () => {
    const { nodes } = await services.get(id);
    const onSecond = () =>
      others
        .get("second")
        ?.processes()
        .machines.map((machine) => machine.id) ?? [];
    const moving = onSecond().toSorted();
    expect(moving).not.toEqual([]);
    await hosts((rpcs) => rpcs.drainHost({ hostId: "second" }));
    killControllers();
    await hostIs("second", ({ drain }) => drain?.state === "drained" && drain.left === 0);
    expect(onSecond()).toEqual([]);
    const after = await isComplete((await clusterNames(platform, connection)).map((name) => Number(name.slice(2))));
    const ids = after.nodes.map((node) => node.id);
    const left = nodes.map((node) => node.id).filter((nodeId) => !ids.includes(nodeId));
    expect(left.toSorted()).toEqual(moving);
    expect(ids).toHaveLength(nodes.length);
  });

  it("stops and starts as a whole, though controllers and an agent are killed", { timeout: longMs }, async () => {
    expectStatus(await platform.rest.post(path("/stop")), 202);
    killControllers();
    await services.settled(id, "Stopped", longMs);
    expect(machines().filter(({ engine }) => engine !== undefined)).toEqual([]);
    expectStatus(await platform.rest.post(path("/start")), 202);
    await waitUntil("a machine's agent runs", () => {
      const [first] = machines();
      return first?.agent !== undefined && killAtOnce(first.agent);
    });
    killControllers();
    await services.settled(id, "Running", longMs);
    await isComplete((await clusterNames(platform, connection)).map((name) => Number(name.slice(2))));
  });

  it("has lost no acknowledged write", { timeout: longMs }, async () => {
    writing.abort();
    await writer.done;
    expect(await writer.missing()).toEqual([]);
  });
});
