import { expect, test } from "vitest";
import { isBraked } from "./failover-brake.ts";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["nothing is held",                           [],                          false],
  ["an operator holds failovers",               ["clock", "failover"],       true],
  ["the store was not read yet",                ["unknown"],                 true],
  ["the clock jumped, or images fail",          ["clock", "maintenance"],    false],
  ["the control plane was restored",            ["restored"],                false],
] as const)("automatic failovers while %s: held back %s", (_, kinds, braked) => {
  expect(isBraked(kinds.map((kind) => ({ kind })))).toBe(braked);
});
