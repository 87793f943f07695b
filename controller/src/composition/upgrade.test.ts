import { expect, test } from "vitest";
import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import { createResourceModel } from "@holdfast/testing/composition/resource-model.ts";
import type { ResourceSpec } from "#resource-kind/resource-kind.ts";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { CompositionObject, CompositionSealer, DesiredMember, Member } from "./composition.ts";
import { planComposition } from "./composition-plan.ts";
import type { RecordStep } from "./composition-step.ts";
import { newComposition } from "./deploy.ts";
import { newDeployment } from "./deployment.ts";
import { afterChange, stepsNow } from "./deployment-progress.ts";
import { blockedReasons, planStackUpgrade, stepsOf, upgradeRequested } from "./upgrade.ts";

const kinds = createResourceKinds([fixtureKind]);
const seal: CompositionSealer = {
  seal: (_, spec) => JSON.stringify(spec),
  spec: (_, sealed) => JSON.parse(sealed),
  desired: ({ spec }) => JSON.parse(spec.sealedDesired),
};
const specOf = (member: Member): ResourceSpec => seal.spec("s", member.sealedSpec);
const member = (name: string, spec: ResourceSpec, kind = "fixture"): DesiredMember => ({
  name,
  kind,
  writtenKind: kind,
  spec,
  needs: [],
  attachments: [],
});
const before = [
  member("a", { plan_name: "tier-1" }),
  member("b", { plan_name: "tier-1" }),
  member("c", { image: "x" }),
];

/** Runs until there is nothing to do; changes of `fails` are not applied. */
function run(start: CompositionObject, scenario = createResourceModel(), fails: ReadonlySet<string> = new Set()) {
  let stack = start;
  const notes: { step: RecordStep; before: CompositionObject }[] = [];
  const acted: string[] = [];
  for (let round = 0; round < 200; round += 1) {
    const step = planComposition(stack, scenario.observe, 0);
    if (step.kind === "wait") {
      if (!scenario.advance(() => 0, { fails: false, vanishes: false })) return { stack, notes, scenario, acted };
      continue;
    }
    if (step.kind === "forget" || step.kind === "remove") throw new Error("nothing is to go");
    if (step.kind === "record") notes.push({ step, before: stack });
    else acted.push(`${step.kind} ${step.member.name}`);
    if (step.kind === "create") scenario.create(step.member.id);
    if (step.kind === "act") scenario.act(step.member.id, !fails.has(step.member.name));
    if (step.kind === "undo") scenario.act(step.member.id, true);
    stack = step.after;
  }
  throw new Error("it does not end");
}

function launched() {
  let n = 0;
  const context = { kinds, seal, deploymentId: "d1", newId: () => `r${(n += 1)}`, now: 0 };
  const template = { name: "t", version: "1" };
  const requests = {
    id: "s",
    organizationId: "o",
    name: "s",
    kind: "stack" as const,
    members: before,
    monthlyCents: 1,
    template,
  };
  return run(newComposition(requests, context));
}

const after = [member("a", { plan_name: "tier-2" }), member("b", { plan_name: "tier-2" }), member("c", { image: "y" })];

function upgrade(fails: ReadonlySet<string>) {
  const { stack, scenario } = launched();
  const changes = planStackUpgrade(stack.status.members, { name: "s", members: after }, kinds, specOf);
  const target = { monthlyCents: 2, acceptedCents: 2, template: { name: "t", version: "2" } };
  const requested = upgradeRequested(stack, { name: "s", members: after }, changes, {
    deploymentId: "d2",
    upgrade: target,
    seal,
    now: 0,
  });
  if (requested === undefined) throw new Error("it runs, so it can be upgraded");
  const record = newDeployment(
    "d2",
    "o",
    { compositionId: "s", type: "upgrade", actor: "", source: "", plan: [] },
    stepsOf(stack.status.members, changes),
    0,
  );
  expect(stepsNow(record.status.steps, requested.status.members).map(({ status }) => status)).toEqual([
    "Pending",
    "Pending",
    "Pending",
  ]);
  const ended = run(requested, scenario, fails);
  const status = ended.notes.reduce(
    (each, { step, before: old }) => afterChange(each, old, step, scenario.observe, 1),
    record,
  ).status;
  return { ...ended, status };
}

test("an upgrade changes members one after the other and ends with the new version", () => {
  const { stack, acted, status } = upgrade(new Set());
  expect(acted).toEqual(["act a", "act b", "act c"]);
  expect(stack.status).toMatchObject({ state: "Running" });
  expect(stack.spec).toMatchObject({ template: { version: "2" }, monthlyCents: 2, acceptedCents: 2 });
  expect(stack.status.members.map(specOf)).toEqual(after.map(({ spec }) => spec));
  expect(status).toMatchObject({
    state: "Completed",
    steps: [{ status: "Completed" }, { status: "Completed" }, { status: "Completed" }],
  });
});

test("only a failed step is undone: completed steps stay, and later ones are not started", () => {
  const { stack, acted, status } = upgrade(new Set(["b"]));
  expect(acted).toEqual(["act a", "act b"]);
  expect(stack.status).toMatchObject({ state: "Running", detail: expect.stringContaining("b:") });
  expect(stack.spec).toMatchObject({ template: { version: "1" }, monthlyCents: 1 });
  expect(stack.status.members.map(specOf)).toEqual([after[0]?.spec, before[1]?.spec, before[2]?.spec]);
  expect(stack.status.members.every(({ change }) => change === undefined)).toBe(true);
  expect(status).toMatchObject({
    state: "Failed",
    steps: [{ status: "Completed" }, { status: "Failed" }, { status: "Pending" }],
  });
});

// The specification's table of changes in place, and changes that block the upgrade.
test.each<[string, readonly DesiredMember[], readonly string[], number]>([
  ["nothing", before, ["unchanged", "unchanged", "unchanged"], 0],
  ["a plan", [member("a", { plan_name: "tier-2" }), ...before.slice(1)], ["in_place", "unchanged", "unchanged"], 0],
  [
    "another member",
    [member("a", { plan_name: "tier-1", port: 1 }), ...before.slice(1)],
    ["blocked", "unchanged", "unchanged"],
    1,
  ],
  ["a resource more", [...before, member("d", {})], ["unchanged", "unchanged", "unchanged", "blocked"], 1],
  ["a resource less", before.slice(1), ["unchanged", "unchanged", "blocked"], 1],
  ["another kind", [member("a", {}, "other"), ...before.slice(1)], ["blocked", "unchanged", "unchanged"], 1],
])("an upgrade with %s", (_, members, expected, blocked) => {
  const { stack } = launched();
  const changes = planStackUpgrade(stack.status.members, { name: "s", members }, kinds, specOf);
  expect(changes.map(({ change }) => change)).toEqual(expected);
  expect(blockedReasons(changes)).toHaveLength(blocked);
});
