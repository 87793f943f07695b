import fc from "fast-check";
import { expect, test } from "vitest";
import { maintenanceWorld } from "../../../../../test/support/controller/pending-world.ts";
import { RollingWorld } from "../../../../../test/support/controller/rolling-world.ts";
import { beginMaintenance } from "../../maintenance/begin-maintenance.ts";
import { pendingUpdates } from "../../maintenance/pending-updates.ts";
import { newOperation } from "#operation/operation.ts";
import { serviceSubject } from "../managed-service.ts";
import { requestVerb } from "../service-verbs.ts";
import { withImagesKept } from "../trial/images-in-turn.ts";
import { beginMove, nodeToMove } from "./move-node.ts";

const ids = ["a", "b", "c"];
const asked = { operationId: "op", now: 1_000_000 };

function restarted(world: RollingWorld): void {
  const outcome = requestVerb(world.object, "restart", undefined, asked);
  if (outcome.kind === "change") world.begin(outcome);
}

function withImage(world: RollingWorld, to: string): void {
  const { object } = world;
  const image = { from: "old", to, fromVersion: "17.0", toVersion: to === "new" ? "17.1" : "" };
  const operation = newOperation({
    id: "op",
    subject: serviceSubject(object.metadata.id),
    organizationId: "org",
    type: "maintenance",
    now: asked.now,
    work: { updates: [to], automatic: false, inTurn: true, image },
  });
  const nodes = withImagesKept(object, image, undefined);
  const instanceGeneration = object.spec.instanceGeneration + 1;
  const spec = { ...object.spec, nodes, image: to, instanceGeneration };
  world.begin({ after: { ...object, spec, status: { ...object.status, operationId: "op" } }, operation });
}

/** What it runs under is older than what its machines would get. */
function withKeepers(world: RollingWorld): void {
  const { object } = world;
  const found = { ...maintenanceWorld([], asked.now), keepers: [{ has: 3, next: 5 }] };
  const updates = pendingUpdates(object, found);
  expect(updates.map(({ kind }) => kind)).toEqual(["keeper"]);
  world.begin(beginMaintenance(object, updates, found, { ...asked, automatic: true }));
}

function moved(world: RollingWorld, id: string): void {
  world.left.add(id);
  const node = nodeToMove(world.object, world.observe());
  if (node !== undefined) world.begin(beginMove(world.object, node, { ...asked, nodeId: "d" }));
}

type Deed = readonly [name: string, act: (world: RollingWorld) => void | Promise<void>];
const deed = (...each: Deed) => fc.constant(each);
const deeds = fc.oneof(
  { weight: 4, arbitrary: deed("control", (world) => world.control()) },
  { weight: 1, arbitrary: deed("look", (world) => world.look()) },
  { weight: 1, arbitrary: deed("control by an old look", (world) => world.control(true)) },
  { weight: 8, arbitrary: fc.constantFrom(...ids, "d", "op").map((id): Deed => [`tick ${id}`, (w) => w.tick(id)]) },
);
const stories = fc.array(deeds, { minLength: 5, maxLength: 150 });
const runs = { numRuns: 40, seed: 15 };

/** Until nothing more happens. */
async function toTheEnd(world: RollingWorld): Promise<void> {
  for (let round = 0; round < 150; round += 1) {
    await world.control();
    for (const id of world.members.keys()) world.tick(id);
    world.now += 500;
  }
}

const kinds: Readonly<Record<string, (world: RollingWorld) => void>> = {
  "a restart": restarted,
  "another image": (world) => withImage(world, "new"),
  "a start of the machines": withKeepers,
  "a node's leave": (world) => moved(world, "b"),
  "a primary's leave": (world) => moved(world, "a"),
};

test.each(Object.entries(kinds))(
  "%s takes one node at a time, whatever comes late, and comes to its end",
  async (_, ask) => {
    await fc.assert(
      fc.asyncProperty(stories, async (story) => {
        const world = new RollingWorld(ids);
        ask(world);
        for (const [, act] of story) {
          await act(world);
          expect(world.mostDown, "nodes that are down").toBeLessThanOrEqual(1);
          expect(world.mostWriters, "writable primaries").toBeLessThanOrEqual(1);
        }
        await toTheEnd(world);
        expect(world.operation?.status).toMatchObject({ state: "completed", error: null });
        expect(world.mostDown).toBeLessThanOrEqual(1);
        expect(world.object.spec.succession).toBeUndefined();
        expect(world.object.spec.nodes).toHaveLength(3);
      }),
      runs,
    );
  },
);

test("a restart leaves each engine with it, and another primary", async () => {
  const world = new RollingWorld(ids);
  restarted(world);
  await toTheEnd(world);
  expect([...world.members.values()].map(({ runs: each }) => each?.restarts)).toEqual([1, 1, 1]);
  expect(world.object.status).toMatchObject({ primaryNodeId: "b", term: 2, state: "Running" });
  expect(world.events).toContain("service.failed_over");
});

test("newer keepers come with one start of each machine, and the primary gives way to a replica that had its own", async () => {
  const world = new RollingWorld(ids);
  withKeepers(world);
  await toTheEnd(world);
  expect(world.operation?.status).toMatchObject({ state: "completed", error: null });
  expect([...world.starts].sort()).toEqual(ids.map((id) => [id, 1]));
  expect(world.mostDown).toBe(1);
  expect(world.object.status).toMatchObject({ primaryNodeId: "b", term: 2, state: "Running" });
  expect(world.object.spec.nodes.some(({ keeps }) => keeps !== undefined)).toBe(false);
});

test("a machine that does not come back from its start keeps the others from theirs, and nothing waits any more", async () => {
  const world = new RollingWorld(ids);
  withKeepers(world);
  world.hanging.add("c");
  for (let minute = 0; minute < 30; minute += 1) {
    await toTheEnd(world);
    world.now += 60_000;
  }
  expect(world.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_not_healthy" } });
  expect(world.object.status).toMatchObject({ state: "Running", operationId: null, primaryNodeId: "a" });
  expect(world.starts.get("a")).toBeUndefined();
  expect(world.object.spec.nodes.some(({ keeps }) => keeps !== undefined)).toBe(false);
  // The next one starts everybody again.
  world.hanging.clear();
  await toTheEnd(world);
  withKeepers(world);
  await toTheEnd(world);
  expect(world.operation?.status).toMatchObject({ state: "completed", error: null });
  expect(world.starts.get("a")).toBe(1);
});

test("an image that does not start never comes to the primary, and the node that it harmed is made anew", async () => {
  const world = new RollingWorld(ids);
  withImage(world, "bad");
  await toTheEnd(world);
  expect(world.operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_engine_failed" } });
  expect(world.object.spec.nodes.map(({ id }) => id)).toEqual(["a", "c", "op"]);
  expect([...world.members.values()].map(({ runs: each }) => each?.image)).toEqual(["old", "old", "old"]);
  expect(world.object.status).toMatchObject({ primaryNodeId: "a", term: 1 });
});

test.each([
  ["a", "the last, which was the primary", "stuck"],
  ["c", "a replica", "rolled_back_not_healthy"],
])("a service runs on though %s, %s, never comes back from its restart", async (id, _, code) => {
  const world = new RollingWorld(ids);
  restarted(world);
  world.hanging.add(id);
  for (let minute = 0; minute < 30; minute += 1) {
    await toTheEnd(world);
    world.now += 60_000;
  }
  expect(world.operation?.status).toMatchObject({ state: "failed", error: { code } });
  expect(world.object.status).toMatchObject({ state: "Running", error: null, operationId: null });
  expect(world.events).not.toContain("service.error");
  world.hanging.clear();
  await toTheEnd(world);
  expect([...world.members.values()].every(({ runs: each }) => each !== undefined)).toBe(true);
  expect(world.object.spec.nodes).toHaveLength(3);
});
