import { fixtureKind } from "@holdfast/testing/composition/fixture-kind.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { type ResourceSpec, specChanges } from "#resource-kind/resource-kind.ts";
import { createResourceKinds } from "#resource-kind/resource-kinds.ts";
import type { Member } from "./composition.ts";
import { notCreated } from "./composition-step.ts";
import { driftFromDescriptor, notApplied } from "./drift.ts";

const kinds = createResourceKinds([
  {
    ...fixtureKind,
    followed: (spec, { port }) => (Number(port) > Number(spec["port"]) ? { ...spec, port } : undefined),
  },
]);
const member = partial<Member>({ name: "db", kind: "fixture" });

test.each<[string, { applied?: ResourceSpec; deployed?: ResourceSpec; actual: ResourceSpec }, string[]]>([
  [
    "a change that was recorded",
    { applied: { plan_name: "a" }, deployed: { plan_name: "b" }, actual: { plan_name: "a" } },
    ["plan_name b -> a"],
  ],
  [
    "one that a user made since",
    { applied: { plan_name: "a" }, deployed: { plan_name: "b" }, actual: { plan_name: "b" } },
    [],
  ],
  [
    "a change by a user",
    { applied: { plan_name: "a" }, deployed: { plan_name: "a" }, actual: { plan_name: "c" } },
    ["plan_name a -> c"],
  ],
  ["members that are not reported", { applied: { image: "a" }, deployed: { image: "b" }, actual: {} }, []],
  ["growth that is followed", { applied: { port: 2 }, deployed: { port: 1 }, actual: { port: 2 } }, []],
  [
    "a resource that the descriptor omits",
    { applied: { plan_name: "a" }, actual: { plan_name: "b" } },
    ["plan_name a -> b"],
  ],
  ["secrets by name alone", { deployed: { env: { KEY: "x" } }, actual: { env: { KEY: "y" } } }, ["env.KEY secret"]],
])("drift has %s", (_name, { applied = {}, deployed, actual }, expected) => {
  const context = { kinds, specOf: () => applied, observe: () => ({ ...notCreated, actual }) };
  const desired = deployed && { kind: "fixture", spec: deployed };
  const changes = driftFromDescriptor(member, desired, context);
  expect(
    changes.map(({ path, before, after, isSecret }) => `${path} ${isSecret ? "secret" : `${before} -> ${after}`}`),
  ).toEqual(expected);
});

test.each<[ResourceSpec, ResourceSpec, ResourceSpec, string[]]>([
  [{ version: "17" }, { version: "18" }, { version: "17" }, ["version"]],
  [{ version: "17" }, { version: "18" }, { version: "18" }, []],
  [{ version: "17" }, { version: "18" }, {}, ["version"]],
  [{}, { tags: { team: "a" } }, { tags: {} }, ["tags"]],
  [{}, { tags: { team: "a" } }, { tags: { team: "a" } }, []],
  [{ tags: { team: "a", x: "1" } }, { tags: { team: "b", x: "2" } }, { tags: { team: "b", x: "1" } }, ["tags.x"]],
])("of the change from %j to %j, a resource with %j lacks %j", (before, desired, actual, lacking) => {
  expect(notApplied(specChanges(before, desired), desired, actual).map(({ path }) => path)).toEqual(lacking);
});
