import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { createFenceOrders } from "./fence-orders.ts";

/** Orders to a host that ends machines once it responds, with a clock of the test. */
function scenario() {
  const state = { nowMs: 0, isThere: false, requested: 0 };
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const provider = {
    async fence() {
      state.requested += 1;
      if (!state.isThere) throw new Error("the host does not answer");
    },
  };
  const orders = createFenceOrders({ provider, clock: { monotonicMs: () => state.nowMs }, log });
  return { state, warnings, fence: (fact: string) => orders.fence(fact, "m") };
}

test("the order to a silent host is repeated after a delay, and logged once", async () => {
  const { state, warnings, fence } = scenario();
  for (let check = 0; check < 50; check += 1) expect(await fence("fence s/1")).toBe(false);
  expect(state.requested).toBe(1);
  state.nowMs += 2_000;
  expect(await fence("fence s/1")).toBe(false);
  expect(state.requested).toBe(2);
  expect(warnings).toEqual(["machine not fenced"]);
  state.isThere = true;
  state.nowMs += 2_000;
  expect(await fence("fence s/1")).toBe(true);
});

test("a machine is ended once for each fact", async () => {
  const { state, fence } = scenario();
  state.isThere = true;
  for (const fact of ["fence s/1", "fence s/1", "fence s/2"]) expect(await fence(fact)).toBe(true);
  expect(state.requested).toBe(2);
});
