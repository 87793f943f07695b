import { next } from "@holdfast/common/machine.ts";
import { expect, it } from "vitest";
import { type MachineState, machineLifecycle } from "./machine-lifecycle.ts";

const states = [...new Set(machineLifecycle.rows.flatMap(([from, , to]) => [from, to]))];

function reachableFrom(start: MachineState): Set<string> {
  const seen = new Set<string>([start]);
  for (const state of seen) for (const [from, , to] of machineLifecycle.rows) if (from === state) seen.add(to);
  return seen;
}

it("leads from the first state to every other", () => {
  expect([...reachableFrom("pending")].sort()).toEqual([...states].sort());
});

it.each(states)("leads from %s to destruction, and from there nowhere but to a failure that is retried", (state) => {
  expect(reachableFrom(state)).toContain("destroying");
});

const living = states.filter((state) => state !== "destroying");

it.each(living.filter((state) => state !== "running"))("takes a running machine for running in %s", (state) => {
  expect(next(machineLifecycle, state, "foundRunning")?.[2]).toBe("running");
});

it("lets only a machine that waits be claimed, and one that is claimed never wait again", () => {
  expect(living.filter((state) => next(machineLifecycle, state, "claimed") !== undefined)).toEqual(["waiting"]);
  expect(next(machineLifecycle, "claimed", "foundWaiting")).toBeUndefined();
});
