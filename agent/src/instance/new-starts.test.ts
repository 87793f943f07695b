import { expect, test } from "vitest";
import { createNewStarts } from "./new-starts.ts";

test("what may not help is tried at once, then less and less often, and after a long peace at once again", () => {
  let now = 0;
  const starts = createNewStarts(() => now);
  const begunAtS: number[] = [];
  for (; now < 4_000_000; now += 1_000) if (starts.begin()) begunAtS.push(now / 1_000);
  const waits = begunAtS.slice(1).map((at, index) => at - (begunAtS[index] ?? 0));
  expect(begunAtS[0]).toBe(0);
  expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600, 600, 600, 600]);
  now += 1_200_001;
  expect([starts.begin(), starts.begin()]).toEqual([true, false]);
});
