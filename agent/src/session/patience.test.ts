import { expect, it } from "vitest";
import { createPatience } from "./patience.ts";

it("doubles with each attempt in vain, up to a limit, and begins anew with a welcome", () => {
  const patience = createPatience();
  const waits = Array.from({ length: 5 }, () => {
    const { ms } = patience;
    patience.failed();
    return ms;
  });
  expect(waits).toEqual([5_000, 10_000, 20_000, 40_000, 40_000]);
  patience.welcomed();
  expect(patience.ms).toBe(5_000);
});

it.each([
  { fleet: "a few agents", fleetReturnMs: 30, first: 5_030, second: 10_060 },
  { fleet: "1,000 agents", fleetReturnMs: 10_000, first: 15_000, second: 30_000 },
  { fleet: "5,000 agents", fleetReturnMs: 50_000, first: 55_000, second: 55_000 },
  { fleet: "what no controller can hold", fleetReturnMs: 2 ** 32 - 1, first: 65_000, second: 65_000 },
])("waits for its turn among $fleet that lost their controller", ({ fleetReturnMs, first, second }) => {
  const patience = createPatience();
  patience.lost(fleetReturnMs);
  expect(patience.ms).toBe(first);
  patience.failed();
  expect(patience.ms).toBe(second);
});
