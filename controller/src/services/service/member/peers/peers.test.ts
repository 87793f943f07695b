import fc from "fast-check";
import { expect, test, vi } from "vitest";
import { PeersScenario } from "@holdfast/testing/controller/peers-scenario.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { create } from "@bufbuild/protobuf";
import { CreateManagedServiceRequestSchema } from "@holdfast/proto/holdfast/v1/managed_service_pb.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import { isFinished } from "#operation/operation.ts";
import type { NodeSpec } from "../../managed-service.ts";
import { newService, type NewServiceContext } from "../../new-service.ts";
import type { SpecArgs } from "../../spec-args.ts";
import { memberSettingsOf } from "../member-settings.ts";
import { memberCommandsOf } from "../member-commands.ts";
import { requireMemberCount, withFirstMember } from "./first-peer.ts";

// No engine on offer elects its leader yet.
vi.mock("@holdfast/common/engine-catalog/engine-catalog.ts", async (original) => ({
  ...(await original<typeof import("@holdfast/common/engine-catalog/engine-catalog.ts")>()),
  topologyOf: () => "peers",
}));

function formed(count = 3): PeersScenario {
  const scenario = new PeersScenario(count);
  scenario.settle(12);
  return scenario;
}

const numbersOf = (scenario: PeersScenario) => scenario.object.spec.nodes.map(({ number }) => number);

function expectSettled(scenario: PeersScenario): void {
  const { object, operation, cluster } = scenario;
  expect(scenario.violations).toEqual([]);
  expect(object.status).toMatchObject({ state: "Running", operationId: null, primaryNodeId: "", term: 1 });
  expect(operation === undefined || isFinished(operation)).toBe(true);
  expect(object.spec.nodes.some(({ joining, leaving, forms }) => joining ?? leaving ?? forms)).toBe(false);
  expect(cluster.toSorted()).toEqual(numbersOf(scenario).toSorted());
  expect(scenario.hasMajority()).toBe(true);
}

test("three members form one cluster, which is stored", () => {
  const scenario = formed();
  expectSettled(scenario);
  expect(scenario.operation?.status.state).toBe("completed");
  expect(scenario.object.status).toMatchObject({
    cluster: { formed: true, leader: "n-1" },
    health: { status: "healthy" },
  });
});

test("of a cluster with restored data, the first member forms it, and the others join one by one", () => {
  const scenario = new PeersScenario(3, withFirstMember);
  expect(scenario.object.spec.nodes.map(({ forms }) => forms)).toEqual([true, undefined, undefined]);
  scenario.settle(3);
  expect(scenario.cluster).toEqual([1]);
  scenario.settle(30);
  expectSettled(scenario);
  expect(scenario.cluster.toSorted()).toEqual([1, 2, 3]);
});

test("a restart reaches one member after another, and the leader last", () => {
  const scenario = formed();
  scenario.request("restart");
  const order: string[] = [];
  for (let round = 0; round < 30; round += 1) {
    scenario.settle(1);
    for (const { id, restarts } of scenario.object.spec.nodes)
      if (restarts?.delivered === restarts?.desired && restarts !== undefined && !order.includes(id)) order.push(id);
  }
  expectSettled(scenario);
  expect(order).toHaveLength(3);
  expect(order.at(-1)).toBe("n-1");
  expect(scenario.refusedStops).toBe(0);
});

test("a restart waits with its reason while the cluster can spare no member", () => {
  const scenario = formed();
  scenario.request("restart");
  scenario.lose("n-3");
  for (const id of ["n-1", "n-2"]) scenario.tick(id);
  for (let round = 0; round < 5; round += 1) scenario.control();
  for (const { restarts } of scenario.object.spec.nodes) expect(restarts).toEqual({ delivered: 0, desired: 1 });
  const check = scenario.object.status.health.checks.find(({ name }) => name === "quorum");
  expect(check).toMatchObject({ status: "degraded", reason: expect.stringContaining("wait") });
});

const restartsOfMembers = ({ members }: PeersScenario) => [...members].map(([id, { runs }]) => `${id} ${runs}`);
const rejected = { state: "failed", error: { code: "rolled_back_parameter_rejected" } };

test("a parameter that a member rejects at its restart reaches no other member", () => {
  const scenario = formed();
  scenario.rejects = true;
  scenario.request("restart");
  scenario.settle(30);
  expectSettled(scenario);
  expect(scenario.operation?.status).toMatchObject(rejected);
  expect(restartsOfMembers(scenario)).toEqual(["n-1 0", "n-2 1", "n-3 0"]);
  scenario.rejects = false;
  scenario.request("restart");
  scenario.settle(30);
  expectSettled(scenario);
  expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
});

test("a parameter that a member rejects reaches no other one either if that member leads by now", () => {
  const scenario = formed();
  scenario.rejects = true;
  scenario.request("restart");
  for (let round = 0; round < 10 && scenario.members.get("n-2")?.runs !== 1; round += 1) scenario.settle(1);
  scenario.hanging.add("n-1");
  scenario.crash("n-1");
  for (const id of ["n-1", "n-2", "n-3"]) scenario.tick(id);
  scenario.control();
  scenario.hanging.clear();
  expect(scenario.object.status.cluster?.leader).toBe("n-2");
  scenario.settle(30);
  expectSettled(scenario);
  expect(scenario.operation?.status).toMatchObject(rejected);
  expect(restartsOfMembers(scenario)).toEqual(["n-1 0", "n-2 1", "n-3 0"]);
});

test("a member whose engine fails after its restart stops the update, and the others run on", () => {
  const scenario = formed();
  scenario.failing.add("n-2");
  scenario.request("restart");
  scenario.settle(40);
  expect(scenario.violations).toEqual([]);
  expect(scenario.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_engine_failed" } });
  expect(restartsOfMembers(scenario)).toEqual(["n-1 0", "n-2 undefined", "n-3 0"]);
  expect(scenario.object.status).toMatchObject({ state: "Running", error: null, operationId: null });
  scenario.failing.clear();
  scenario.settle(30);
  expectSettled(scenario);
});

test("a member that does not restart stops the update after minutes", () => {
  const scenario = formed();
  scenario.hanging.add("n-2");
  scenario.request("restart");
  scenario.settle(150, 10_000);
  expect(scenario.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_not_healthy" } });
  expect(restartsOfMembers(scenario)).toEqual(["n-1 0", "n-2 undefined", "n-3 0"]);
  expect(scenario.object.status).toMatchObject({ state: "Running", error: null, operationId: null });
});

test("a cluster grows to five and shrinks to three, one member at a time", () => {
  const scenario = formed();
  for (const count of [4, 5]) {
    scenario.request("add");
    scenario.settle(30);
    expectSettled(scenario);
    expect(numbersOf(scenario)).toHaveLength(count);
  }
  for (const count of [4, 3]) {
    scenario.request("remove");
    scenario.settle(30);
    expectSettled(scenario);
    expect(numbersOf(scenario)).toHaveLength(count);
  }
  expect(scenario.refusedStops).toBe(0);
});

test("a cluster of one grows to three by one operation, one member at a time", () => {
  const scenario = formed(1);
  scenario.request("add");
  const { operation: first } = scenario;
  const progress: number[] = [];
  while (scenario.isBusy && progress.length < 60) {
    scenario.settle(1);
    progress.push(scenario.operation?.status.progressPct ?? 0);
  }
  expectSettled(scenario);
  expect(numbersOf(scenario)).toEqual([1, 2, 3]);
  expect(scenario.operation?.metadata.id).toBe(first?.metadata.id);
  expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
  expect(progress).toEqual(progress.toSorted((a, b) => a - b));
});

test("a member that cannot join a cluster of one leaves again, and the addition has failed", () => {
  const scenario = formed(1);
  scenario.request("add");
  scenario.settle(1);
  scenario.lose("n-2");
  scenario.settle(120, 10_000);
  expect(scenario.operation?.status.state).toBe("failed");
  const lost = scenario.object.spec.nodes.find(({ id }) => id === "n-2");
  expect(lost?.joining).toBe(true);
  scenario.request("remove");
  scenario.settle(30);
  expect(numbersOf(scenario)).toEqual([1, 2]);
  scenario.request("remove");
  scenario.settle(30);
  expectSettled(scenario);
  expect(numbersOf(scenario)).toEqual([1]);
});

test("a member of a lost host is replaced by a new number before it is removed", () => {
  const scenario = formed();
  scenario.lose("n-2");
  scenario.settle(40);
  expectSettled(scenario);
  expect(numbersOf(scenario)).toEqual([1, 3, 4]);
});

test("two new members join one after the other, and no member leaves before both joined", () => {
  const scenario = formed();
  const [first, ...others] = scenario.object.spec.nodes;
  const added = [4, 5].map((number): NodeSpec => {
    return { id: `n-${number}`, hostname: `db-${number}.local`, zone: "local", number, joining: true };
  });
  const nodes: NodeSpec[] = [{ ...first!, leaving: true }, ...others, ...added];
  const spec = { ...scenario.object.spec, nodes, nextNodeNumber: 6, instanceGeneration: 9 };
  scenario.object = { ...scenario.object, spec };
  for (let round = 0; round < 30; round += 1) {
    scenario.settle(1);
    if (scenario.object.spec.nodes.some(({ joining }) => joining === true)) expect(scenario.cluster).toContain(1);
  }
  expectSettled(scenario);
  expect(numbersOf(scenario)).toEqual([2, 3, 4, 5]);
});

test("only first members form a cluster, each until its first report", () => {
  const scenario = new PeersScenario(3);
  const settingsOf = (index: number) => {
    const node = scenario.object.spec.nodes[index] as NodeSpec;
    return memberSettingsOf(partial<SpecArgs>({ service: scenario.object, node, addressOf: (id) => id }));
  };
  const members = [1, 2, 3].map((number) => ({ nodeId: `n-${number}`, number, address: `n-${number}` }));
  expect(settingsOf(0)).toMatchObject({ peers: { clusterId: "service-1", form: true, leaving: [], members } });
  expect(settingsOf(0)).not.toHaveProperty("replication");
  for (let round = 0; round < 3; round += 1) scenario.control();
  scenario.tick("n-2");
  scenario.control();
  expect([0, 1, 2].map((index) => settingsOf(index))).toMatchObject(
    [true, false, true].map((form) => ({ peers: { form } })),
  );
  scenario.settle(12);
  expectSettled(scenario);
  scenario.request("add");
  expect(settingsOf(3)).toMatchObject({ peers: { form: false } });
});

test("a new service of peers has no primary, and all first members form its cluster", () => {
  const request = (nodeCount: number) =>
    create(CreateManagedServiceRequestSchema, {
      name: "db",
      databaseType: "valkey",
      planName: defaultCatalog.plans[0]!.planName,
      storageSizeGb: 1,
      nodeCount,
    });
  const context = partial<NewServiceContext>({
    organizationId: "o",
    serviceId: "s",
    nodeId: "n-1",
    replicaIds: ["n-2", "n-3", "n-4", "n-5"],
    operationId: "op",
    shortId: "k3v9q2zt",
    domain: "test",
    now: 1,
    defaultAllowedCidrs: [],
    catalog: { ...defaultCatalog, zones: [{ zone: "local" }] },
    engines: [
      {
        databaseType: "valkey",
        port: 6379,
        defaultVersion: "9",
        versions: [{ version: "9", available: true }],
        planExcesses: () => [],
      },
    ],
  });
  const { service } = newService(request(3), context);
  expect(service.status.primaryNodeId).toBe("");
  expect(service.spec).toMatchObject({
    nextNodeNumber: 4,
    nodes: [1, 2, 3].map(() => ({ joining: true, forms: true })),
  });
  expect(() => newService(request(2), context)).toThrow("has 1, 3, 4, 5 nodes");
});

test("without a majority the service is unhealthy, and nothing changes", () => {
  const scenario = formed();
  for (const id of ["n-2", "n-3"]) {
    const member = scenario.members.get(id);
    if (member !== undefined) [member.isLost, member.runs] = [true, undefined];
  }
  scenario.settle(5);
  expect(scenario.object.status.health).toMatchObject({
    status: "unhealthy",
    reason: expect.stringContaining("majority"),
  });
  expect(scenario.cluster).toEqual([1, 2, 3]);
  expect(scenario.violations).toEqual([]);
});

test("the quorum is one check of each node", () => {
  const { checks } = formed().object.status.health;
  const names = checks.map(({ name, nodeId }) => `${name} ${nodeId}`);
  expect(names).toEqual([...new Set(names)]);
});

test("switchovers are refused, and so are two nodes", async () => {
  const { object } = formed();
  const [node] = object.spec.nodes;
  expect(() => memberCommandsOf(object).failOver(object, node!, { operationId: "o", now: 1 })).toThrow("by itself");
  expect(() => memberCommandsOf(object).requireRemovable(object, node!)).toThrow(
    "has 1, 3, 4, 5 nodes: with 2, the loss of either one loses the majority. For 1 node, restore a backup as a new service",
  );
  const { object: single } = formed(1);
  expect(() => memberCommandsOf(single).requireRemovable(single, node!)).toThrow("Delete the service");
  expect(() => memberCommandsOf(single).requireAddable(single, 1)).toThrow("with 2, the loss of either one");
  for (const count of [2, 3, 4]) expect(() => memberCommandsOf(single).requireAddable(single, count)).not.toThrow();
  for (const count of [1, 3, 4, 5]) expect(() => requireMemberCount("valkey", count)).not.toThrow();
  for (const count of [0, 6]) expect(() => requireMemberCount("valkey", count)).toThrow("has 1, 3, 4, 5 nodes.");
  expect(() => requireMemberCount("valkey", 2)).toThrow("the loss of either one loses the majority");
});

const member = fc.nat(7).map((index) => `n-${index + 1}`);
const calm = [
  fc.constant(["control"] as const),
  fc.constant(["paused"] as const),
  fc.constant(["look"] as const),
  fc.tuple(fc.constant("tick" as const), member),
  fc.tuple(fc.constant("request" as const), fc.constantFrom("restart" as const, "add" as const, "remove" as const)),
];
const faulty = [
  ...calm,
  fc.tuple(fc.constant("crash" as const), member),
  fc.tuple(fc.constant("lose" as const), member),
];

function run(scenario: PeersScenario, command: readonly string[]): void {
  const [kind, what = ""] = command;
  scenario.now += 500;
  if (kind === "control") scenario.control();
  else if (kind === "paused") scenario.control(true);
  else if (kind === "look") scenario.refreshView();
  else if (kind === "tick") scenario.tick(what);
  else if (kind === "request") scenario.request(what as "restart");
  else if (kind === "crash") scenario.crash(what);
  else scenario.lose(what);
}

test("no order ever takes the majority, in any order of events", () => {
  const commands = fc.array(fc.oneof(...calm), { maxLength: 120 });
  fc.assert(
    fc.property(fc.constantFrom(1, 3, 4, 5), fc.boolean(), commands, (count, isFormed, requested) => {
      const scenario = isFormed ? formed(count) : new PeersScenario(count);
      if (isFormed) scenario.request("restart");
      for (const command of requested) run(scenario, command);
      scenario.settle(120);
      expectSettled(scenario);
      expect(scenario.refusedStops).toBe(0);
    }),
    { numRuns: 150 },
  );
});

test("crashes and lost hosts lose no acknowledged write, form no second cluster and end with all members", () => {
  const commands = fc.array(fc.oneof(...faulty), { maxLength: 120 });
  fc.assert(
    fc.property(fc.constantFrom(1, 3, 4, 5), commands, (count, requested) => {
      const scenario = formed(count);
      for (const command of requested) run(scenario, command);
      scenario.settle(160, 10_000);
      // New members that cannot join because a host was lost are removed by their user.
      while (scenario.object.spec.nodes.at(-1)?.joining === true) {
        scenario.request("remove");
        scenario.settle(160, 10_000);
      }
      expectSettled(scenario);
    }),
    { numRuns: 150 },
  );
});
