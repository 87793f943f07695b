import { expect, test } from "vitest";
import { createBootClock } from "./boot-clock.ts";

test("includes a suspend during which the monotonic clock stops, and never decreases", () => {
  let [monotonic, up] = [1_000, 50_000];
  const clock = createBootClock(
    () => monotonic,
    () => up,
  );
  expect(clock()).toBe(50_000);
  monotonic += 3;
  expect(clock()).toBe(50_003);
  // The next reading, which the kernel rounds down.
  monotonic += 3;
  expect(clock()).toBe(50_003);
  monotonic += 10;
  up += 3_600_000;
  expect(clock()).toBe(3_650_000);
});
