import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { concatInTurns, groupsOf, turnBytes } from "./in-turns.ts";

test("parts are put behind one another while others have their turns", async () => {
  const parts = [0, 1, turnBytes - 1, 3 * turnBytes + 1].map((size, n) => new Uint8Array(size).fill(n));
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    while (!isOver) {
      await turn();
      turns += 1;
    }
  })();
  const whole = await concatInTurns(parts);
  isOver = true;
  await others;
  expect(Buffer.from(whole).equals(Buffer.concat(parts))).toBe(true);
  expect(whole.buffer.byteLength).toBe(whole.byteLength);
  expect(turns).toBeGreaterThanOrEqual(3);
  expect(await concatInTurns([])).toHaveLength(0);
});

test("groups keep the order of their items and have a turn's bytes at most, or one item", () => {
  const half = turnBytes / 2;
  expect(groupsOf([half, half, 1, 3 * half, 1], (bytes) => bytes)).toEqual([[half, half], [1], [3 * half], [1]]);
  expect(groupsOf([], () => 1)).toEqual([]);
});
