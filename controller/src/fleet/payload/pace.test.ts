import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { createPace } from "./pace.ts";

const now = () => performance.now();

test("bytes of all streams share one rate, in the order they came, each after a turn of the event loop", async () => {
  const pace = createPace(1_000_000, now, silentLog);
  const passed: string[] = [];
  const startedMs = now();
  const streams = ["a", "b"].map(async (name) => {
    for (let n = 0; n < 5; n += 1) {
      await pace.pass(name, 10_000);
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
  const pace = createPace(1_000_000, now, silentLog);
  await pace.pass("a", 1_000);
  const givenUp = Array.from({ length: 10 }, () => pace.pass("b", 3_600_000_000, AbortSignal.abort()));
  const next = pace.pass("c", 1);
  for (const each of givenUp) await expect(each).rejects.toThrow("aborted");
  await next;
});

test("a source with many streams has a turn as often as one with a single stream", async () => {
  const pace = createPace(1_000_000, now, silentLog);
  const passed: string[] = [];
  const pass = async (source: string) => {
    await pace.pass(source, 1_000);
    passed.push(source);
  };
  const greedy = Array.from({ length: 50 }, () => pass("greedy"));
  const modest = pass("modest").then(() => pass("modest"));
  await Promise.all([...greedy, modest]);
  expect(passed.indexOf("modest")).toBeLessThanOrEqual(2);
  expect(passed.lastIndexOf("modest")).toBeLessThanOrEqual(6);
});
