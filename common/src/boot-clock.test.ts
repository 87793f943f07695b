import { expect, test } from "vitest";
import { createBootClock } from "./boot-clock.ts";

test("counts on through a suspend that the monotonic clock stands still in, and never goes back", () => {
  let [monotonic, up] = [1_000, 50_000];
  const clock = createBootClock(
    () => monotonic,
    () => up,
  );
  expect(clock()).toBe(50_000);
  monotonic += 3;
  expect(clock()).toBe(50_003);
  // Read again, and rounded down by the kernel.
  monotonic += 3;
  expect(clock()).toBe(50_003);
  monotonic += 10;
  up += 3_600_000;
  expect(clock()).toBe(3_650_000);
});
