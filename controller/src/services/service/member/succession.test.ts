import fc from "fast-check";
import { expect, test } from "vitest";
import { type NodeId, nodeIds, SuccessionWorld } from "../../../../../test/support/controller/succession-world.ts";

type Deed = readonly [name: string, act: (world: SuccessionWorld) => void | Promise<void>];

const anyNode = fc.constantFrom(...nodeIds);
const flag = (name: "alive" | "connected" | "promotes") =>
  fc.tuple(anyNode, fc.boolean()).map(
    ([id, value]): Deed => [
      `${id} ${name} ${value}`,
      (world) => {
        world.members[id][name] = value;
      },
    ],
  );
const always = (...deed: Deed) => fc.constant(deed);
const deeds: fc.Arbitrary<Deed> = fc.oneof(
  { weight: 6, arbitrary: always("control", (world) => world.control()) },
  { weight: 6, arbitrary: anyNode.map((id): Deed => [`tick ${id}`, (world) => world.tick(id)]) },
  { weight: 2, arbitrary: always("write", (world) => world.write()) },
  { weight: 2, arbitrary: always("ask", (world) => world.ask()) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 70 }).map(waitSeconds) },
  { weight: 1, arbitrary: flag("alive") },
  { weight: 1, arbitrary: flag("connected") },
  { weight: 1, arbitrary: flag("promotes") },
  { weight: 1, arbitrary: anyNode.map((id): Deed => [`crash ${id}`, (world) => world.crash(id)]) },
  {
    weight: 1,
    arbitrary: fc.nat(1_000).map((index): Deed => [`deliver ${index}`, (world) => world.deliver(index)]),
  },
  { weight: 1, arbitrary: always("look", (world) => world.look()) },
  { weight: 1, arbitrary: always("control by an old look", (world) => world.control(true)) },
);

function waitSeconds(seconds: number): Deed {
  return [
    `wait ${seconds} s`,
    (world) => {
      world.now += seconds * 1_000;
    },
  ];
}

const stories = fc.array(deeds, { minLength: 10, maxLength: 80 });
// The same stories each time: whoever changes the protocol raises their number for once.
const runs = { numRuns: 150, seed: 15 };

async function live(story: readonly Deed[]): Promise<SuccessionWorld> {
  const world = new SuccessionWorld();
  for (const [, deed] of story) {
    await deed(world);
    expectSafe(world);
  }
  return world;
}

function expectSafe(world: SuccessionWorld): void {
  const writable = world.writable();
  expect(writable.length, "writable primaries").toBeLessThanOrEqual(1);
  for (const id of writable) expect(world.members[id].rows).toEqual(world.acknowledged);
}

/** Everything that answers does as it is told for as long as it takes. */
async function rest(world: SuccessionWorld): Promise<void> {
  for (let round = 0; round < 60; round += 1) {
    await world.control();
    for (const id of nodeIds) world.tick(id);
    expectSafe(world);
    world.now += 5_000;
  }
}

function mend(world: SuccessionWorld, how: { readonly promotes?: boolean; readonly except?: NodeId } = {}): void {
  for (const id of nodeIds) {
    const isMended = id !== how.except;
    Object.assign(world.members[id], { alive: isMended, connected: isMended, promotes: how.promotes ?? true });
  }
}

test("no story has two writable primaries, or one that lacks an acknowledged row", async () => {
  await fc.assert(
    fc.asyncProperty(stories, async (story) => void (await live(story))),
    runs,
  );
});

test.each([true, false])(
  "every succession ends once both members answer (and replicas promote: %s)",
  async (promotes) => {
    const property = fc.asyncProperty(stories, async (story) => {
      const world = await live(story);
      mend(world, { promotes });
      await rest(world);
      expect(world.object.spec.succession).toBeUndefined();
      expect(world.writable()).toEqual([world.object.status.primaryNodeId]);
    });
    await fc.assert(property, runs);
  },
);

test("a new primary that falls silent is waited for, and becomes the primary when it is back", async () => {
  const world = new SuccessionWorld();
  world.ask();
  await world.control();
  world.tick("a");
  world.members.b.promotes = false;
  await world.control();
  expect(world.object.spec.succession?.step).toBe("promote");
  mend(world, { except: "b" });
  await rest(world);
  expect(world.object.spec.succession?.step).toBe("promote");
  expect(world.writable()).toEqual([]);
  mend(world);
  await rest(world);
  expect(world.writable()).toEqual(["b"]);
});

test("a new primary that never takes a write is recalled, and the old one is the primary again under a higher term", async () => {
  const world = new SuccessionWorld();
  const { term } = world.object.status;
  world.members.b.promotes = false;
  world.ask();
  await rest(world);
  expect(world.object.spec.succession).toBeUndefined();
  expect(world.writable()).toEqual(["a"]);
  // Named, recalled, and the old one named.
  expect(world.object.status.term).toBe(term + 3);
});

test("an old primary that is silent from the start stays it", async () => {
  const world = new SuccessionWorld();
  world.members.a.connected = false;
  world.ask();
  await rest(world);
  expect(world.object.spec.succession).toBeUndefined();
  expect(world.writable()).toEqual(["a"]);
  world.members.a.connected = true;
  await rest(world);
  expect(world.writable()).toEqual(["a"]);
});
