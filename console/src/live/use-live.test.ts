import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { createSchedule } from "./use-live.ts";

beforeEach(() => vi.useFakeTimers());
afterEach(() => vi.useRealTimers());

test("an event causes one request shortly after, and a burst causes one more", () => {
  const run = vi.fn();
  const schedule = createSchedule(run);
  schedule.after(15_000);
  schedule.changed();
  vi.advanceTimersByTime(200);
  expect(run).toHaveBeenCalledTimes(1);
  for (let event = 0; event < 50; event += 1) schedule.changed();
  vi.advanceTimersByTime(2_000);
  expect(run).toHaveBeenCalledTimes(2);
});

test("a stream of 50 events a second causes one request a second", () => {
  const run = vi.fn();
  const schedule = createSchedule(run);
  for (let event = 0; event < 500; event += 1) {
    schedule.changed();
    vi.advanceTimersByTime(20);
  }
  expect(run.mock.calls.length).toBeGreaterThanOrEqual(9);
  expect(run.mock.calls.length).toBeLessThanOrEqual(11);
});

test("a stopped schedule causes no request", () => {
  const run = vi.fn();
  const schedule = createSchedule(run);
  schedule.after(10);
  schedule.stop();
  // A response that arrives later schedules nothing either.
  schedule.after(10);
  vi.advanceTimersByTime(1_000);
  expect(run).not.toHaveBeenCalled();
});
