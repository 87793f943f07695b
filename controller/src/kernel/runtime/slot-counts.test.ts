import { expect, test } from "vitest";
import { createSlotCounts, fairRoom } from "./slot-counts.ts";

test.each([
  [128, 0, 26],
  [64, 16, 0],
  [65, 16, 1],
  [5, 1, 1],
  [4, 1, 0],
  [1, 0, 1],
  [0, 0, 0],
])("of %i free slots one that has %i may take %i more", (free, used, more) => {
  expect(fairRoom(free, used)).toBe(more);
});

test.each([1, 2, 8, 20, 100])("%i who take all that they get leave something for one who comes next", (takers) => {
  const size = 128;
  const held = Array.from({ length: takers }, () => 0);
  const free = () => size - held.reduce((sum, each) => sum + each, 0);
  for (let turn = 0; turn < size; turn += 1)
    for (const [taker, used] of held.entries()) held[taker] = used + Math.min(1, fairRoom(free(), used));
  expect(fairRoom(free(), 0)).toBeGreaterThan(0);
  expect(Math.max(...held) - Math.min(...held)).toBeLessThanOrEqual(1);
});

test("those that are unwell have a quarter, in all and of their organization, and the others the rest", () => {
  const counts = createSlotCounts({ total: 64, organization: 8, unwellPart: 1 / 4 });
  const takeAll = (organizationId: string, unwell: boolean) => {
    let taken = 0;
    for (; counts.room(organizationId, 0, unwell) > 0; taken += 1) counts.add(organizationId, 1, unwell);
    return taken;
  };
  const dead = Array.from({ length: 20 }, (_, n) => takeAll(`dead ${n}`, true));
  expect([Math.max(...dead), dead.reduce((sum, each) => sum + each, 0)]).toEqual([2, 16]);
  expect(takeAll("well", false)).toBe(8);
  for (let n = 0; n < 100; n += 1) takeAll(`other ${n}`, false);
  expect(counts.room("last", 0, true)).toBe(0);
});
