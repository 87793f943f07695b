import { expect, test } from "vitest";
import { isUnwellShare, shareAfter, slotLimits } from "./endpoint-share.ts";

const after = (share: number, outcomes: string) =>
  Array.from(outcomes).reduce((now, outcome) => shareAfter(now, outcome === "+", slotLimits), share);

test.each([
  ["grows by one with each success", 4, "+++", 7],
  ["is full at the limit of an endpoint", 15, "+++", 16],
  ["is halved by each failure", 16, "--", 4],
  ["is never nothing", 16, "-----------", 1],
  ["is down to one when all that a full one had in flight hangs", 16, "-".repeat(16), 1],
  ["stays low when each second attempt hangs", 16, "-+".repeat(20), 2],
  ["is nearly full when one in fifty hangs", 16, `-${"+".repeat(49)}`, 16],
  ["comes back from one to full with successes alone", 1, "+".repeat(15), 16],
])("a share %s", (_, share, outcomes, expected) => {
  expect(after(share, outcomes)).toBe(expected);
});

test("an endpoint is unwell from its first failure until it did better than it began", () => {
  const { starting } = slotLimits;
  expect(isUnwellShare(starting, slotLimits)).toBe(false);
  expect(isUnwellShare(after(starting, "-"), slotLimits)).toBe(true);
  expect(isUnwellShare(after(starting, "-+"), slotLimits)).toBe(true);
  expect(isUnwellShare(after(starting, "-++"), slotLimits)).toBe(false);
});
