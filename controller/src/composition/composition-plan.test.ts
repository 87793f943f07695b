import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import {
  compositionKind,
  type CompositionObject,
  type CompositionSealer,
  type DesiredMember,
  type Member,
} from "./composition.ts";
import { planComposition } from "./composition-plan.ts";
import { faultOf, type Observed } from "./composition-step.ts";
import { newComposition, redeployed } from "./deploy.ts";
import { planDeploy } from "./deploy-plan.ts";

const kinds = createResourceKinds([fixtureKind]);
const seal: CompositionSealer = {
  seal: (_, spec) => JSON.stringify(spec),
  spec: (_, sealed) => JSON.parse(sealed),
  desired: ({ spec }) => JSON.parse(spec.sealedDesired),
};
const running: Observed = {
  phase: "running",
  healthy: true,
  detail: null,
  progressPct: 100,
  actual: {},
  outputsVersion: "1",
  isChangeApplied: true,
};
const absent: Observed = { ...running, phase: "absent", healthy: false };

/** Members, each of which can depend on those before it. */
const desired: fc.Arbitrary<readonly DesiredMember[]> = fc
  .array(fc.tuple(fc.array(fc.nat(11), { maxLength: 4 }), fc.constantFrom("tier-1", "tier-2")), {
    minLength: 1,
    maxLength: 12,
  })
  .map((rows) =>
    rows.map(([needs, plan], index) => ({
      name: `m${index}`,
      kind: "fixture",
      writtenKind: "fixture",
      spec: { plan_name: plan },
      needs: [...new Set(needs.filter((n) => n < index).map((n) => `m${n}`))].toSorted(),
      attachments: [],
    })),
  )
  .chain((members) => fc.shuffledSubarray(members, { minLength: members.length }));

function made(members: readonly DesiredMember[]): CompositionObject {
  let n = 0;
  const context = { kinds, seal, deploymentId: "d", newId: () => `r${(n += 1)}`, now: 0 };
  return newComposition(
    { id: "c", organizationId: "o", name: "shop", kind: "project", members, monthlyCents: 0 },
    context,
  );
}

/** Runs it with resources that are created immediately; returns the order of creations, and the maximum in flight. */
function run(composition: CompositionObject) {
  const there = new Set<string>();
  const order: string[] = [];
  let current = composition;
  for (let round = 0; round < 300; round += 1) {
    const observe = (member: Member) => (there.has(member.id) ? running : absent);
    const step = planComposition(current, observe, 0);
    if (step.kind === "wait") return { current, order, observe };
    if (step.kind === "forget" || step.kind === "remove") throw new Error("nothing is to go");
    if (step.kind === "create") {
      there.add(step.member.id);
      order.push(step.member.name);
    }
    current = step.after;
  }
  throw new Error("it does not end");
}

describe("a change of a resource that runs", () => {
  const member: Member = {
    id: "r1",
    name: "web",
    kind: "fixture",
    resourceName: "shop-web",
    sealedSpec: "{}",
    createdBy: "d",
    needs: [],
    step: "ready",
    isInDescriptor: true,
    isMarked: true,
    change: { action: "redeploy_app", sealedTarget: "{}", keys: [], step: "begun" },
  };

  test("that fails has the reason of the resource, or says that it was not applied", () => {
    const reason = "The program ended before it was ready, with the exit code 1.";
    const former = { ...running, isChangeApplied: false };
    expect(faultOf(member, { ...former, changeFailure: reason })).toBe(
      `web: the deployment of the app failed: ${reason}`,
    );
    expect(faultOf(member, former)).toBe("web: the deployment of the app failed: it was not applied.");
    expect(faultOf(member, { ...running, changeFailure: "An earlier one." })).toBeUndefined();
  });

  test("keeps its deployment open until it runs again with its wiring", () => {
    const first = made([
      { name: "web", kind: "fixture", writtenKind: "fixture", spec: {}, needs: [], attachments: [] },
    ]);
    const members = first.status.members.map(
      (each): Member => ({ ...each, step: "ready", isMarked: true, wiredTo: "" }),
    );
    const wiring: CompositionObject = { ...first, status: { ...first.status, state: "Wiring", members } };
    const changing = planComposition(wiring, () => ({ ...running, phase: "changing" }), 0);
    expect(changing).not.toMatchObject({ after: { status: { state: "Running" } } });
    const done = planComposition(wiring, () => running, 0);
    expect(done).toMatchObject({ kind: "record", after: { status: { state: "Running" } } });
  });
});

describe("a composition", () => {
  test("creates each resource after its dependencies, and is Running then", () => {
    fc.assert(
      fc.property(desired, (members) => {
        const { current, order } = run(made(members));
        expect(current.status.state).toBe("Running");
        expect(order.toSorted()).toEqual(members.map(({ name }) => name).toSorted());
        for (const { name, needs } of members)
          for (const needed of needs) expect(order.indexOf(needed)).toBeLessThan(order.indexOf(name));
      }),
    );
  });

  test("deployed twice has nothing to do the second time, and deployments follow their plans", () => {
    fc.assert(
      fc.property(desired, (members) => {
        const { current, order, observe } = run(made(members));
        const specOf = (member: Member) => seal.spec("c", member.sealedSpec);
        const first = planDeploy(undefined, { name: "shop", members }, { kinds, specOf, observe });
        expect(
          first.entries
            .filter(({ action }) => action === "create")
            .map(({ name }) => name)
            .toSorted(),
        ).toEqual(order.toSorted());
        const plan = planDeploy(current, { name: "shop", members }, { kinds, specOf, observe });
        expect(new Set(plan.entries.map(({ action }) => action))).toEqual(new Set(["noop"]));
        expect(plan.beforeCents).toBe(plan.monthlyCents);
        const context = { kinds, seal, observe, deploymentId: "d2", newId: () => "new", now: 1 };
        const again = redeployed(current, members, plan, context);
        expect(again.isNoop).toBe(true);
        expect(again.after.status.members).toEqual(current.status.members);
      }),
    );
  });

  test("creates at most ten concurrently", () => {
    const many = Array.from(
      { length: 25 },
      (_, n): DesiredMember => ({
        name: `m${n}`,
        kind: "fixture",
        writtenKind: "fixture",
        spec: {},
        needs: [],
        attachments: [],
      }),
    );
    let current = made(many);
    const created: string[] = [];
    for (let round = 0; round < 40; round += 1) {
      const step = planComposition(current, () => ({ ...running, phase: "creating" }), 0);
      if (step.kind === "create") created.push(step.member.name);
      if (step.kind === "wait" || step.kind === "forget" || step.kind === "remove") break;
      current = step.after;
    }
    expect(created).toHaveLength(10);
  });
});

test("a consumer gets changed outputs of its attachments, while they run", () => {
  const of = (name: string, attached: readonly string[]): DesiredMember => ({
    name,
    kind: "fixture",
    writtenKind: "fixture",
    spec: { attachments: attached },
    needs: attached,
    attachments: attached.map((each) => ({ name: each })),
  });
  const { current } = run(made([of("db", []), of("app", ["db"])]));
  const stepWhile = (composition: CompositionObject, db: Partial<Observed>) =>
    planComposition(composition, ({ name }) => (name === "db" ? { ...running, ...db } : running), 0);
  expect(stepWhile(current, {})).toEqual({ kind: "wait", forMs: undefined });
  const reset = { outputsVersion: "2" };
  expect(stepWhile(current, { ...reset, phase: "changing" })).toEqual({ kind: "wait", forMs: undefined });
  const events = stepWhile(current, reset);
  if (events.kind !== "wire") throw new Error(`it is ${events.kind}`);
  expect([events.member.name, events.after.status.state]).toEqual(["app", "Running"]);
  expect(stepWhile(events.after, reset)).toEqual({ kind: "wait", forMs: undefined });
});

test("an image change updates, a plan change is recorded, and omitted resources are unmanaged", () => {
  const of = (name: string, spec: DesiredMember["spec"]): DesiredMember => ({
    name,
    kind: "fixture",
    writtenKind: "fixture",
    spec,
    needs: [],
    attachments: [],
  });
  const { current, observe } = run(
    made([
      of("app", { image: "a", plan_name: "tier-1", env: { KEY: "old" } }),
      of("db", { plan_name: "tier-1" }),
      of("gone", {}),
    ]),
  );
  const specOf = (member: Member) => seal.spec("c", member.sealedSpec);
  const members = [
    of("app", { image: "b", plan_name: "tier-1", env: { KEY: "new" } }),
    of("db", { plan_name: "tier-2" }),
    of("more", {}),
  ];
  const plan = planDeploy(current, { name: "shop", members }, { kinds, specOf, observe });
  expect(plan.entries).toMatchObject([
    {
      name: "app",
      action: "update",
      changes: [
        { path: "env.KEY", before: null, after: null },
        { path: "image", before: '"a"', after: '"b"' },
      ],
    },
    { name: "db", action: "noop", reason: "recorded, not applied", pendingChanges: [{ path: "plan_name" }] },
    { name: "more", action: "create" },
    { name: "gone", action: "unmanaged" },
  ]);
  const context = { kinds, seal, observe, deploymentId: "d2", newId: () => "new", now: 1 };
  const after = redeployed(current, members, plan, context).after;
  const later = planDeploy(after, { name: "shop", members }, { kinds, specOf, observe });
  expect(later.entries.find(({ name }) => name === "db")).toMatchObject({
    action: "noop",
    pendingChanges: [{ path: "plan_name" }],
  });
});

test("stored compositions keep their keys", () => {
  const text =
    '{"spec":{"face":"stack"},"status":{"mark":"db:ready","members":[{"name":"db","kind":"database","madeBy":"d"}]}}';
  const composition = compositionKind.parse(text);
  expect(composition).toMatchObject({
    spec: { kind: "stack" },
    status: { progressMark: "db:ready", members: [{ name: "db", kind: "database", createdBy: "d" }] },
  });
  expect(compositionKind.format(composition)).toBe(text);
});
