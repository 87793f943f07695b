import { expect, test } from "vitest";
import { createRestartLimit } from "./restart-limit.ts";

test("restarts are immediate, then less and less frequent, and immediate again after a long time", () => {
  let now = 0;
  const limit = createRestartLimit(() => now);
  const startedAtS: number[] = [];
  for (; now < 4_000_000; now += 1_000) if (limit.tryAcquire()) startedAtS.push(now / 1_000);
  const waits = startedAtS.slice(1).map((at, index) => at - (startedAtS[index] ?? 0));
  expect(startedAtS[0]).toBe(0);
  expect(waits).toEqual([30, 60, 120, 240, 480, 600, 600, 600, 600, 600]);
  now += 1_200_001;
  expect([limit.tryAcquire(), limit.tryAcquire()]).toEqual([true, false]);
});
