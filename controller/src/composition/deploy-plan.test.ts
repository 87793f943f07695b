import { describe, expect, test } from "vitest";
import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import { type CompositionObject, type DesiredMember, type Member, resourceNameOf } from "./composition.ts";
import { notCreated, type Observed } from "./composition-step.ts";
import { planDeploy } from "./deploy-plan.ts";

const kinds = createResourceKinds([{ ...fixtureKind, identity: ["image"] }]);
const running: Observed = { ...notCreated, phase: "running", healthy: true };
const desired = (name: string, spec: object = {}): DesiredMember => ({
  name,
  kind: "fixture",
  writtenKind: "gadget",
  spec: { ...spec },
  needs: [],
  attachments: [],
});

/** A project with one resource of this spec. */
function projectWith(name: string, spec: object): CompositionObject {
  const member: Member = {
    name,
    kind: "fixture",
    id: "r1",
    resourceName: resourceNameOf("shop", name),
    needs: [],
    step: "ready",
    createdBy: "d",
    isInDescriptor: true,
    isMarked: true,
    sealedSpec: JSON.stringify(spec),
  };
  return {
    metadata: { id: "c", name: "shop", organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 },
    spec: { kind: "project", sealedDesired: "", monthlyCents: 0 },
    status: {
      state: "Running",
      since: 0,
      detail: null,
      hasRun: true,
      deploymentId: "d",
      members: [member],
      deadline: null,
      progressMark: "",
    },
  };
}

const context = {
  kinds,
  specOf: ({ sealedSpec }: Member) => JSON.parse(sealedSpec),
  observe: () => running,
};

describe("a plan", () => {
  test("says which new resource is blocked, and by which holder of its name", () => {
    const nameHolder = ({ name }: DesiredMember) => (name === "db" ? "service 42 of stack s" : undefined);
    const members = [desired("db"), desired("cache")];
    const plan = planDeploy(undefined, { name: "shop", members }, { ...context, nameHolder });
    expect(plan.entries).toMatchObject([
      { name: "db", action: "create", reason: "blocked: name in use by service 42 of stack s" },
      { name: "cache", action: "create", reason: null },
    ]);
    const free = planDeploy(undefined, { name: "shop", members }, context);
    expect(free.digest).not.toBe(plan.digest);
  });

  test("has a fault for a resource that would become something else", () => {
    const before = projectWith("db", { image: "postgresql", plan_name: "tier-1" });
    const members = [desired("new"), desired("db", { image: "valkey", plan_name: "tier-1" })];
    const { faults } = planDeploy(before, { name: "shop", members }, context);
    expect(faults).toEqual([
      {
        field: "resources[1].kind",
        pointer: "/descriptor/resources/1/kind",
        code: "immutable",
        detail: "cannot become gadget: db is postgresql and keeps its data; use another name for the new resource",
      },
    ]);
    const same = [desired("db", { image: "postgresql", plan_name: "tier-2" })];
    expect(planDeploy(before, { name: "shop", members: same }, context).faults).toEqual([]);
  });
});

describe("the name of a resource", () => {
  test.each([
    ["shop", "db", "shop-db"],
    ["ca", "b-c", "ca-b-c"],
  ])("of %s and %s is %s", (parent, name, expected) => expect(resourceNameOf(parent, name)).toBe(expected));

  test("is that of no other parent and name", () => {
    const parts = [
      "a",
      "b",
      "ca",
      "a-b",
      "b-c",
      "ca-b",
      "c",
      "x".repeat(38),
      `${"x".repeat(38)}-a`,
      `a-${"x".repeat(38)}`,
    ];
    const names = parts.flatMap((parent) => parts.map((name) => resourceNameOf(parent, name)));
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z][a-z0-9-]{0,38}[a-z0-9]$/);
  });
});
