import { next } from "@holdfast/common/machine.ts";
import { expect, it } from "vitest";
import { type MachineState, machineLifecycle } from "./machine-lifecycle.ts";

const states = [...new Set(machineLifecycle.rows.flatMap(([from, , to]) => [from, to]))];

function reachableFrom(start: MachineState): Set<string> {
  const seen = new Set<string>([start]);
  for (const state of seen) for (const [from, , to] of machineLifecycle.rows) if (from === state) seen.add(to);
  return seen;
}

it("reaches every state from the first one", () => {
  expect([...reachableFrom("pending")].sort()).toEqual([...states].sort());
});

it.each(states)("leads from %s to destroying, and from there only to failed", (state) => {
  expect(reachableFrom(state)).toContain("destroying");
});

const living = states.filter((state) => state !== "destroying");

it.each(living.filter((state) => state !== "running"))("accepts a running machine as running in %s", (state) => {
  expect(next(machineLifecycle, state, "foundRunning")?.[2]).toBe("running");
});

it("allows a claim of a waiting machine only, and no return to waiting", () => {
  expect(living.filter((state) => next(machineLifecycle, state, "claimed") !== undefined)).toEqual(["waiting"]);
  expect(next(machineLifecycle, "claimed", "foundWaiting")).toBeUndefined();
});
