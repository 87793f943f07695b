import { expect, test } from "vitest";
import { failoverSuspended } from "./automatic-failover.ts";

// biome-ignore format: a table, aligned so that it reads as one
test.each([
  ["nothing is paused",                         [],                          false],
  ["an operator suspended failovers",           ["clock", "failover"],       true],
  ["the store was not read yet",                ["unknown"],                 true],
  ["the clock jumped, or images fail",          ["clock", "maintenance"],    false],
  ["the control plane was restored",            ["restored"],                false],
] as const)("automatic failovers while %s: suspended %s", (_, kinds, isSuspended) => {
  expect(failoverSuspended(kinds.map((kind) => ({ kind })))).toBe(isSuspended);
});
