import { expect, test } from "vitest";
import { createFairShare, fairShareOf } from "./fair-share.ts";

test.each([
  [128, 0, 26],
  [64, 16, 0],
  [65, 16, 1],
  [5, 1, 1],
  [4, 1, 0],
  [1, 0, 1],
  [0, 0, 0],
])("of %i free slots one that has %i may take %i more", (free, used, more) => {
  expect(fairShareOf(free, used)).toBe(more);
});

test.each([1, 2, 8, 20, 100])("%i holders of their full share leave a slot for the next one", (holders) => {
  const size = 128;
  const used = Array.from({ length: holders }, () => 0);
  const free = () => size - used.reduce((sum, each) => sum + each, 0);
  for (let round = 0; round < size; round += 1)
    for (const [holder, count] of used.entries()) used[holder] = count + Math.min(1, fairShareOf(free(), count));
  expect(fairShareOf(free(), 0)).toBeGreaterThan(0);
  expect(Math.max(...used) - Math.min(...used)).toBeLessThanOrEqual(1);
});

test("unhealthy targets have a quarter overall and per organization, others the remainder", () => {
  const counts = createFairShare({ total: 64, organization: 8, unhealthyShare: 1 / 4 });
  const takeAll = (organizationId: string, unhealthy: boolean) => {
    let taken = 0;
    for (; counts.available(organizationId, 0, unhealthy) > 0; taken += 1) counts.add(organizationId, 1, unhealthy);
    return taken;
  };
  const dead = Array.from({ length: 20 }, (_, n) => takeAll(`dead ${n}`, true));
  expect([Math.max(...dead), dead.reduce((sum, each) => sum + each, 0)]).toEqual([2, 16]);
  expect(takeAll("well", false)).toBe(8);
  for (let n = 0; n < 100; n += 1) takeAll(`other ${n}`, false);
  expect(counts.available("last", 0, true)).toBe(0);
});
