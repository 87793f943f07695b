import { expect, test } from "vitest";
import type { Catalog, ManagedService, Operation } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { monthlyCost, remainingText, stepText, storageFault, undeleteRefusal } from "./service-view.ts";

const catalog = partial<Catalog>({
  plans: [{ plan_name: "small", vcpu: 1, memory_gb: 2, monthly_cost: 10, kind: "container" }],
  storage_tiers: [{ storage_tier: "standard", medium: "SSD", use: "", monthly_cost_per_gb: 0.1 }],
});

test("the cost is the sum of plan and storage of each node", () => {
  const choice = { plan_name: "small", storage_tier: "standard", storage_size_gb: 20, nodes: 2 };
  expect(monthlyCost(catalog, choice)).toBe(24);
  expect(monthlyCost(catalog, { ...choice, plan_name: "gone" })).toBeUndefined();
});

test.each([
  ["SetupServer", "Setup server"],
  [null, "Waiting to start"],
])("the step %s reads as %s", (step, text) => expect(stepText(step)).toBe(text));

test("an operation has the time to its deadline", () => {
  const operation = partial<Operation>({ deadline: "2030-01-01T00:01:00Z" });
  expect(remainingText(operation, Date.parse("2030-01-01T00:00:00Z"))).toBe("at most 1 min");
  expect(remainingText(operation, Date.parse("2030-01-01T00:02:00Z"))).toBe("longer than expected");
});

test.each([
  [null, "No final backup is retained."],
  ["2029-12-31T00:00:00Z", "The retention of the final backup has ended."],
  ["2030-01-02T00:00:00Z", undefined],
])("a service with a backup until %s has the refusal %s", (undelete_until, refusal) =>
  expect(undeleteRefusal({ undelete_until }, Date.parse("2030-01-01T00:00:00Z"))).toBe(refusal),
);

test.each([
  ["storage", "unhealthy", "Writes are blocked."],
  ["storage", "degraded", undefined],
  ["process", "unhealthy", undefined],
] as const)("the check %s that is %s has the fault of the disk %s", (name, status, fault) => {
  const check = { name, status, node_id: "n", since: null, reason: "Writes are blocked." };
  expect(
    storageFault(partial<ManagedService>({ health: { status, since: null, reason: null, checks: [check] } })),
  ).toBe(fault);
});
