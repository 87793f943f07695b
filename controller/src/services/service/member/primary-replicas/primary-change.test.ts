import fc from "fast-check";
import { expect, test } from "vitest";
import { type NodeId, nodeIds, PrimaryChangeScenario } from "@holdfast/testing/controller/primary-change-scenario.ts";

type Action = readonly [name: string, act: (scenario: PrimaryChangeScenario) => void | Promise<void>];

const anyNode = fc.constantFrom(...nodeIds);
const flag = (name: "alive" | "connected" | "promotes") =>
  fc.tuple(anyNode, fc.boolean()).map(
    ([id, value]): Action => [
      `${id} ${name} ${value}`,
      (scenario) => {
        scenario.members[id][name] = value;
      },
    ],
  );
const always = (...action: Action) => fc.constant(action);
const actions: fc.Arbitrary<Action> = fc.oneof(
  { weight: 6, arbitrary: always("control", (scenario) => scenario.control()) },
  { weight: 6, arbitrary: anyNode.map((id): Action => [`tick ${id}`, (scenario) => scenario.tick(id)]) },
  { weight: 2, arbitrary: always("write", (scenario) => scenario.write()) },
  { weight: 2, arbitrary: always("ask", (scenario) => scenario.requestFailover()) },
  { weight: 2, arbitrary: fc.integer({ min: 1, max: 70 }).map(waitSeconds) },
  { weight: 1, arbitrary: flag("alive") },
  { weight: 1, arbitrary: flag("connected") },
  { weight: 1, arbitrary: flag("promotes") },
  { weight: 1, arbitrary: anyNode.map((id): Action => [`crash ${id}`, (scenario) => scenario.crash(id)]) },
  {
    weight: 1,
    arbitrary: fc.nat(1_000).map((index): Action => [`deliver ${index}`, (scenario) => scenario.deliver(index)]),
  },
  { weight: 1, arbitrary: always("look", (scenario) => scenario.refreshView()) },
  { weight: 1, arbitrary: always("control by an old look", (scenario) => scenario.control(true)) },
);

function waitSeconds(seconds: number): Action {
  return [
    `wait ${seconds} s`,
    (scenario) => {
      scenario.now += seconds * 1_000;
    },
  ];
}

const scenarios = fc.array(actions, { minLength: 10, maxLength: 80 });
// A fixed seed, so that each run has the same scenarios. A change of the protocol raises their number once.
const runs = { numRuns: 150, seed: 15 };

async function live(trace: readonly Action[]): Promise<PrimaryChangeScenario> {
  const scenario = new PrimaryChangeScenario();
  for (const [, action] of trace) {
    await action(scenario);
    expectSafe(scenario);
  }
  return scenario;
}

function expectSafe(scenario: PrimaryChangeScenario): void {
  const writable = scenario.writable();
  expect(writable.length, "writable primaries").toBeLessThanOrEqual(1);
  for (const id of writable) expect(scenario.members[id].rows).toEqual(scenario.acknowledged);
}

/** Everything that responds follows its orders, for as long as it takes. */
async function rest(scenario: PrimaryChangeScenario): Promise<void> {
  for (let round = 0; round < 60; round += 1) {
    await scenario.control();
    for (const id of nodeIds) scenario.tick(id);
    expectSafe(scenario);
    scenario.now += 5_000;
  }
}

function mend(
  scenario: PrimaryChangeScenario,
  how: { readonly promotes?: boolean; readonly except?: NodeId } = {},
): void {
  for (const id of nodeIds) {
    const isMended = id !== how.except;
    Object.assign(scenario.members[id], { alive: isMended, connected: isMended, promotes: how.promotes ?? true });
  }
}

test("no scenario has two writable primaries, or one that lacks an acknowledged row", async () => {
  await fc.assert(
    fc.asyncProperty(scenarios, async (trace) => void (await live(trace))),
    runs,
  );
});

test.each([true, false])(
  "every primary change ends once both members answer (and replicas promote: %s)",
  async (promotes) => {
    const property = fc.asyncProperty(scenarios, async (trace) => {
      const scenario = await live(trace);
      mend(scenario, { promotes });
      await rest(scenario);
      expect(scenario.object.spec.primaryChange).toBeUndefined();
      expect(scenario.writable()).toEqual([scenario.object.status.primaryNodeId]);
    });
    await fc.assert(property, runs);
  },
);

test("a new primary that falls silent is waited for, and becomes the primary when it is back", async () => {
  const scenario = new PrimaryChangeScenario();
  scenario.requestFailover();
  await scenario.control();
  scenario.tick("a");
  scenario.members.b.promotes = false;
  await scenario.control();
  expect(scenario.object.spec.primaryChange?.step).toBe("promote");
  mend(scenario, { except: "b" });
  await rest(scenario);
  expect(scenario.object.spec.primaryChange?.step).toBe("promote");
  expect(scenario.writable()).toEqual([]);
  mend(scenario);
  await rest(scenario);
  expect(scenario.writable()).toEqual(["b"]);
});

test("a new primary that takes no write is recalled, and the old one is named under a higher term", async () => {
  const scenario = new PrimaryChangeScenario();
  const { term } = scenario.object.status;
  scenario.members.b.promotes = false;
  scenario.requestFailover();
  await rest(scenario);
  expect(scenario.object.spec.primaryChange).toBeUndefined();
  expect(scenario.writable()).toEqual(["a"]);
  // Named, recalled, and the old one named.
  expect(scenario.object.status.term).toBe(term + 3);
});

test("a successor that does not replay the last log in time does not replace the primary", async () => {
  const scenario = new PrimaryChangeScenario();
  const { term } = scenario.object.status;
  scenario.members.b.alive = false;
  scenario.requestFailover();
  await scenario.control();
  scenario.tick("a");
  await scenario.control();
  scenario.now += 5_000;
  await scenario.control();
  expect(scenario.object.spec.primaryChange?.step).toBe("yield");
  scenario.now += 2_000;
  await scenario.control();
  expect(scenario.object.spec.primaryChange?.step).toBe("promote");
  expect(scenario.object.status).toMatchObject({ primaryNodeId: "a", term: term + 1 });
  await rest(scenario);
  expect(scenario.writable()).toEqual(["a"]);
});

test("a primary that is silent from the start of a switchover remains the primary", async () => {
  const scenario = new PrimaryChangeScenario();
  scenario.members.a.connected = false;
  scenario.requestFailover();
  await rest(scenario);
  expect(scenario.object.spec.primaryChange).toBeUndefined();
  expect(scenario.writable()).toEqual(["a"]);
  scenario.members.a.connected = true;
  await rest(scenario);
  expect(scenario.writable()).toEqual(["a"]);
});
