import fc from "fast-check";
import { expect, test } from "vitest";
import { maintenanceContext } from "@holdfast/testing/controller/pending-updates.ts";
import { RollingScenario } from "@holdfast/testing/controller/rolling-scenario.ts";
import { beginMaintenance } from "../../../maintenance/begin-maintenance.ts";
import { pendingUpdates } from "../../../maintenance/pending-updates.ts";
import { serviceSubject } from "../../managed-service.ts";
import { requestCommand } from "../../service-commands.ts";
import { withPinnedImages } from "../../canary/image-rollout.ts";
import { beginMove, nodeToMove } from "../move-node.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "../../service-operations.ts";

const ids = ["a", "b", "c"];
const args = { operationId: "op", now: 1_000_000 };

function restarted(scenario: RollingScenario): void {
  const outcome = requestCommand(scenario.object, "restart", undefined, args);
  if (outcome.kind === "change") scenario.begin(outcome);
}

function withImage(scenario: RollingScenario, to: string): void {
  const { object } = scenario;
  const image = { from: "old", to, fromVersion: "17.0", toVersion: to === "new" ? "17.1" : "" };
  const operation = newOperation({
    id: "op",
    subject: serviceSubject(object.metadata.id),
    organizationId: "org",
    type: serviceOperations.maintenance,
    now: args.now,
    work: { updates: [to], automatic: false, inRollout: true, image },
  });
  const nodes = withPinnedImages(object, image, undefined);
  const instanceGeneration = object.spec.instanceGeneration + 1;
  const spec = { ...object.spec, nodes, image: to, instanceGeneration };
  scenario.begin({ after: { ...object, spec, status: { ...object.status, operationId: "op" } }, operation });
}

/** The service's keeper is older than the keeper of new machines. */
function withKeepers(scenario: RollingScenario): void {
  const { object } = scenario;
  const found = { ...maintenanceContext([], args.now), keepers: [{ has: 3, next: 5 }] };
  const updates = pendingUpdates(object, found);
  expect(updates.map(({ kind }) => kind)).toEqual(["keeper"]);
  scenario.begin(beginMaintenance(object, updates, found, { ...args, automatic: true }));
}

function moved(scenario: RollingScenario, id: string): void {
  scenario.deletedMembers.add(id);
  const node = nodeToMove(scenario.object, scenario.observe());
  if (node !== undefined) scenario.begin(beginMove(scenario.object, node, { ...args, nodeId: "d" }));
}

type Action = readonly [name: string, act: (scenario: RollingScenario) => void | Promise<void>];
const action = (...each: Action) => fc.constant(each);
const actions = fc.oneof(
  { weight: 4, arbitrary: action("control", (scenario) => scenario.control()) },
  { weight: 1, arbitrary: action("look", (scenario) => scenario.refreshView()) },
  { weight: 1, arbitrary: action("control by an old observation", (scenario) => scenario.control(true)) },
  { weight: 8, arbitrary: fc.constantFrom(...ids, "d", "op").map((id): Action => [`tick ${id}`, (w) => w.tick(id)]) },
);
const scenarios = fc.array(actions, { minLength: 5, maxLength: 150 });
const runs = { numRuns: 40, seed: 15 };

/** Runs until nothing changes any more. */
async function toTheEnd(scenario: RollingScenario): Promise<void> {
  for (let round = 0; round < 150; round += 1) {
    await scenario.control();
    for (const id of scenario.members.keys()) scenario.tick(id);
    scenario.now += 500;
  }
}

const kinds: Readonly<Record<string, (scenario: RollingScenario) => void>> = {
  "a restart": restarted,
  "another image": (scenario) => withImage(scenario, "new"),
  "a start of the machines": withKeepers,
  "a node's leave": (scenario) => moved(scenario, "b"),
  "a primary's leave": (scenario) => moved(scenario, "a"),
};

test.each(Object.entries(kinds))(
  "%s updates one node at a time, with delays anywhere, and completes",
  async (_, request) => {
    await fc.assert(
      fc.asyncProperty(scenarios, async (trace) => {
        const scenario = new RollingScenario(ids);
        request(scenario);
        for (const [, act] of trace) {
          await act(scenario);
          expect(scenario.maxDown, "nodes that are down").toBeLessThanOrEqual(1);
          expect(scenario.maxWriters, "writable primaries").toBeLessThanOrEqual(1);
        }
        await toTheEnd(scenario);
        expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
        expect(scenario.maxDown).toBeLessThanOrEqual(1);
        expect(scenario.object.spec.primaryChange).toBeUndefined();
        expect(scenario.object.spec.nodes).toHaveLength(3);
      }),
      runs,
    );
  },
);

test("a restart leaves each engine with it, and another primary", async () => {
  const scenario = new RollingScenario(ids);
  restarted(scenario);
  await toTheEnd(scenario);
  expect([...scenario.members.values()].map(({ runs: each }) => each?.restarts)).toEqual([1, 1, 1]);
  expect(scenario.object.status).toMatchObject({ primaryNodeId: "b", term: 2, state: "Running" });
  expect(scenario.events).toContain("service.failed_over");
});

test("newer keepers need one start of each machine, and the primary switches over to an updated replica", async () => {
  const scenario = new RollingScenario(ids);
  withKeepers(scenario);
  await toTheEnd(scenario);
  expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
  expect([...scenario.starts].sort()).toEqual(ids.map((id) => [id, 1]));
  expect(scenario.maxDown).toBe(1);
  expect(scenario.object.status).toMatchObject({ primaryNodeId: "b", term: 2, state: "Running" });
  expect(scenario.object.spec.nodes.some(({ pinned }) => pinned !== undefined)).toBe(false);
});

test("a machine that does not return from its start stops the update, and nothing waits any more", async () => {
  const scenario = new RollingScenario(ids);
  withKeepers(scenario);
  scenario.hanging.add("c");
  for (let minute = 0; minute < 30; minute += 1) {
    await toTheEnd(scenario);
    scenario.now += 60_000;
  }
  expect(scenario.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_not_healthy" } });
  expect(scenario.object.status).toMatchObject({ state: "Running", operationId: null, primaryNodeId: "a" });
  expect(scenario.starts.get("a")).toBeUndefined();
  expect(scenario.object.spec.nodes.some(({ pinned }) => pinned !== undefined)).toBe(false);
  // The next restart includes every node again.
  scenario.hanging.clear();
  await toTheEnd(scenario);
  withKeepers(scenario);
  await toTheEnd(scenario);
  expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
  expect(scenario.starts.get("a")).toBe(1);
});

test("an image that does not start never reaches the primary, and the failed node is replaced", async () => {
  const scenario = new RollingScenario(ids);
  withImage(scenario, "bad");
  await toTheEnd(scenario);
  expect(scenario.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_engine_failed" } });
  expect(scenario.object.spec.nodes.map(({ id }) => id)).toEqual(["a", "c", "op"]);
  expect([...scenario.members.values()].map(({ runs: each }) => each?.image)).toEqual(["old", "old", "old"]);
  expect(scenario.object.status).toMatchObject({ primaryNodeId: "a", term: 1 });
});

test("a parameter that a replica rejects at its restart never reaches the primary", async () => {
  const scenario = new RollingScenario(ids);
  scenario.rejects = true;
  restarted(scenario);
  await toTheEnd(scenario);
  expect(scenario.operation?.status).toMatchObject({
    state: "failed",
    error: {
      code: "rolled_back_parameter_rejected",
      message: expect.stringContaining("did not start with shared_buffers"),
    },
  });
  expect([...scenario.members].map(([id, { runs: each }]) => [id, each?.restarts])).toEqual([
    ["a", 0],
    ["b", 1],
    ["c", 0],
  ]);
  expect(scenario.object.status).toMatchObject({ state: "Running", operationId: null, primaryNodeId: "a", term: 1 });
  // A later restart is without the parameter that its user took back, and includes every node.
  scenario.rejects = false;
  restarted(scenario);
  await toTheEnd(scenario);
  expect(scenario.operation?.status).toMatchObject({ state: "completed", error: null });
});

test.each([
  ["a", "the last, which was the primary", "stuck"],
  ["c", "a replica", "rolled_back_not_healthy"],
])("a service keeps running though %s, %s, never restarts", async (id, _, code) => {
  const scenario = new RollingScenario(ids);
  restarted(scenario);
  scenario.hanging.add(id);
  for (let minute = 0; minute < 30; minute += 1) {
    await toTheEnd(scenario);
    scenario.now += 60_000;
  }
  expect(scenario.operation?.status).toMatchObject({ state: "failed", error: { code } });
  expect(scenario.object.status).toMatchObject({ state: "Running", error: null, operationId: null });
  expect(scenario.events).not.toContain("service.error");
  scenario.hanging.clear();
  await toTheEnd(scenario);
  expect([...scenario.members.values()].every(({ runs: each }) => each !== undefined)).toBe(true);
  expect(scenario.object.spec.nodes).toHaveLength(3);
});
