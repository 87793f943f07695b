import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createRevisionWaits } from "./revision-waits.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function follower(revision: bigint) {
  const progress = {
    at: revision,
    requests: 0,
    revision: () => progress.at,
    requestProgress: () => void (progress.requests += 1),
  };
  return progress;
}

test("a thousand waits share one timer, and one progress request per tick", async () => {
  const waits = createRevisionWaits();
  const memory = follower(1n);
  const all = Promise.all(
    Array.from({ length: 1_000 }, (_, n) => waits.untilRevision(memory, BigInt(2 + (n % 2)), 1_000)),
  );
  expect([vi.getTimerCount(), memory.requests]).toEqual([1, 1]);
  await vi.advanceTimersByTimeAsync(300);
  expect(memory.requests).toBe(4);
  memory.at = 3n;
  waits.advanced();
  waits.advanced();
  await vi.advanceTimersByTimeAsync(0);
  await all;
  expect(vi.getTimerCount()).toBe(0);
});

test("a wait that takes too long is rejected, and others continue", async () => {
  const waits = createRevisionWaits();
  const [slow, quick] = [follower(1n), follower(1n)];
  const late = waits.untilRevision(slow, 9n, 500).catch((error: unknown) => error);
  const patient = waits.untilRevision(slow, 2n, 5_000);
  const other = waits.untilRevision(quick, 2n, 5_000);
  await vi.advanceTimersByTimeAsync(500);
  expect(await late).toMatchObject({ key: "STORE_UNAVAILABLE" });
  for (const each of [slow, quick]) each.at = 2n;
  waits.advanced();
  await vi.advanceTimersByTimeAsync(0);
  await Promise.all([patient, other]);
  expect(vi.getTimerCount()).toBe(0);
  await waits.untilRevision(quick, 2n, 1);
});
