import type { InferenceSettings } from "@holdfast/sdk/responses.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { expect, test } from "vitest";
import { centsText, numberOf, spentPercent } from "./inference-view.ts";

test("cents are an amount", () => expect(centsText(1_234, "USD")).toBe("$12.34"));

test.each([
  [5_000, 1_000, 250, 25],
  [5_000, 6_000, 0, 100],
  [0, 0, 0, 100],
])("of %s cents, %s spent and %s reserved are %s percent", (limit, spent_cents, reserved_cents, percent) => {
  const settings = { monthly_cost_limit_cents: limit, circuit: { spent_cents, reserved_cents } };
  expect(spentPercent(partial<InferenceSettings>(settings))).toBe(percent);
});

test("an empty text is no number", () => {
  expect(numberOf(" ")).toBeUndefined();
  expect(numberOf("60")).toBe(60);
});
