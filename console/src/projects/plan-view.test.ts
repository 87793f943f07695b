import type { ProjectPlan } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { costChangeText, descriptorOf, diffLines, firstDescriptor, hasChanges } from "./plan-view.ts";

test("the first descriptor is one", () => {
  expect(descriptorOf(firstDescriptor).descriptor).toMatchObject({ name: "shop" });
});

test.each(["", "[]", "null", "name: shop"])("%j is not a descriptor", (text) => {
  const { descriptor, fault } = descriptorOf(text);
  expect(descriptor).toBeUndefined();
  expect(fault).toMatch(/^Is not/);
});

test("a change is a removed and an added line", () => {
  const changes = [
    { path: "spec.plan", before: "tier-1", after: "tier-2" },
    { path: "spec.tags", before: null, after: { team: "shop" } },
  ];
  expect(diffLines(changes)).toEqual([
    { sign: "-", text: 'spec.plan: "tier-1"' },
    { sign: "+", text: 'spec.plan: "tier-2"' },
    { sign: "+", text: 'spec.tags: {"team":"shop"}' },
  ]);
});

test("a plan has changes if a resource is created or updated", () => {
  expect(hasChanges(partial<ProjectPlan>({ plan: [{ action: "noop" }, { action: "unmanaged" }] }))).toBe(false);
  expect(hasChanges(partial<ProjectPlan>({ plan: [{ action: "noop" }, { action: "create" }] }))).toBe(true);
});

test("the cost is that before and after", () =>
  expect(costChangeText(partial<ProjectPlan>({ monthly_cost: 12, cost_delta: 2, currency: "USD" }))).toBe(
    "$10.00 -> $12.00 a month",
  ));
