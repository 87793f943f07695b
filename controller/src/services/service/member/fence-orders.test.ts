import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { createFenceOrders } from "./fence-orders.ts";

/** Orders to a host that ends machines once it is there, by a clock that is set here. */
function world() {
  const state = { nowMs: 0, isThere: false, told: 0 };
  const warnings: string[] = [];
  const log = { ...silentLog, warn: (message: string) => void warnings.push(message) };
  const provider = {
    async fence() {
      state.told += 1;
      if (!state.isThere) throw new Error("the host does not answer");
    },
  };
  const orders = createFenceOrders({ provider, clock: { monotonicMs: () => state.nowMs }, log });
  return { state, warnings, isEnded: (fact: string) => orders.isEnded(fact, "m") };
}

test("a host that does not answer is told again after a moment, and logged once", async () => {
  const { state, warnings, isEnded } = world();
  for (let look = 0; look < 50; look += 1) expect(await isEnded("fence s/1")).toBe(false);
  expect(state.told).toBe(1);
  state.nowMs += 2_000;
  expect(await isEnded("fence s/1")).toBe(false);
  expect(state.told).toBe(2);
  expect(warnings).toEqual(["machine not fenced"]);
  state.isThere = true;
  state.nowMs += 2_000;
  expect(await isEnded("fence s/1")).toBe(true);
});

test("a machine is ended once for each fact", async () => {
  const { state, isEnded } = world();
  state.isThere = true;
  for (const fact of ["fence s/1", "fence s/1", "fence s/2"]) expect(await isEnded(fact)).toBe(true);
  expect(state.told).toBe(2);
});
