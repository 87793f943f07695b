import { expect, test } from "vitest";
import { defaultCatalog } from "./catalog.ts";
import { amountOf, isAccepted, priceOfService } from "./price.ts";

test("a service costs its plan and storage for each node, in integer cents", () => {
  const size = { planName: "tier-2", storageSizeGb: 50, storageTier: "maxiops" };
  expect(priceOfService(defaultCatalog, size)).toEqual({ planCents: 3_000, storageCents: 1_000 });
  expect(priceOfService(defaultCatalog, { ...size, storageTier: "standard" }, 2)).toEqual({
    planCents: 6_000,
    storageCents: 600,
  });
  expect(() => priceOfService(defaultCatalog, { ...size, storageTier: "tape" })).toThrow("tape");
  expect(amountOf(3_042)).toBe(30.42);
});

// The specification's tolerance: 0.01 in the currency of the preview.
test.each([
  [30.4, true],
  [30.41, true],
  [30.39, true],
  [30.42, false],
  [30.38, false],
  [0, false],
])("the amount %d is accepted for 30.40: %s", (amount, accepted) => {
  expect(isAccepted(amount, 3_040)).toBe(accepted);
});
