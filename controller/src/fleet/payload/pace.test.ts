import { expect, test } from "vitest";
import { createPace } from "./pace.ts";

const now = () => performance.now();

test("bytes of all streams share one rate, in the order they came, each after a turn of the event loop", async () => {
  const pace = createPace(1_000_000, now);
  const passed: string[] = [];
  const startedMs = now();
  const streams = ["a", "b"].map(async (name) => {
    for (let n = 0; n < 5; n += 1) {
      await pace.pass(10_000);
      passed.push(name);
    }
  });
  expect(passed).toEqual([]);
  await Promise.all(streams);
  expect(passed.join("")).toBe("ababababab");
  // The first starts at once, so nine of the ten are waited for; a timer may be a millisecond early.
  expect(now() - startedMs).toBeGreaterThan(88);
});

test("what is given up while it waits holds nobody up", async () => {
  const pace = createPace(1_000_000, now);
  await pace.pass(1_000);
  const givenUp = Array.from({ length: 10 }, () => pace.pass(3_600_000_000, AbortSignal.abort()));
  const next = pace.pass(1);
  for (const each of givenUp) await expect(each).rejects.toThrow("aborted");
  await next;
});
