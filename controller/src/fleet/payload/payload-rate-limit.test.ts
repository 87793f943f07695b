import { silentLog } from "@holdfast/common/log.ts";
import { expect, test } from "vitest";
import { createPayloadRateLimit } from "./payload-rate-limit.ts";

const now = () => performance.now();

test("all streams share one rate in the order of their requests, never synchronously", async () => {
  const rateLimit = createPayloadRateLimit(1_000_000, now, silentLog);
  const passed: string[] = [];
  const startedMs = now();
  const streams = ["a", "b"].map(async (name) => {
    for (let n = 0; n < 5; n += 1) {
      await rateLimit.acquire(name, 10_000);
      passed.push(name);
    }
  });
  expect(passed).toEqual([]);
  await Promise.all(streams);
  expect(passed.join("")).toBe("ababababab");
  // The first starts immediately, so nine of ten wait; a timer may be a millisecond early.
  expect(now() - startedMs).toBeGreaterThan(88);
});

test("an aborted transfer does not delay others", async () => {
  const rateLimit = createPayloadRateLimit(1_000_000, now, silentLog);
  await rateLimit.acquire("a", 1_000);
  const givenUp = Array.from({ length: 10 }, () => rateLimit.acquire("b", 3_600_000_000, AbortSignal.abort()));
  const next = rateLimit.acquire("c", 1);
  for (const each of givenUp) await expect(each).rejects.toThrow("aborted");
  await next;
});

test("a source with many streams is served as often as one with a single stream", async () => {
  const rateLimit = createPayloadRateLimit(1_000_000, now, silentLog);
  const passed: string[] = [];
  const pass = async (source: string) => {
    await rateLimit.acquire(source, 1_000);
    passed.push(source);
  };
  const greedy = Array.from({ length: 50 }, () => pass("greedy"));
  const modest = pass("modest").then(() => pass("modest"));
  await Promise.all([...greedy, modest]);
  expect(passed.indexOf("modest")).toBeLessThanOrEqual(2);
  expect(passed.lastIndexOf("modest")).toBeLessThanOrEqual(6);
});
