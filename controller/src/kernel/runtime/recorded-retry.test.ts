import { expect, test } from "vitest";
import { afterFailure, remainingPauseMs, type RecordedRetry } from "./recorded-retry.ts";

const now = 1_000_000;

test.each([
  [{}, [5_000, 25_000, 125_000, 300_000, 300_000]],
  [{ maxMs: 60_000 }, [5_000, 25_000, 60_000, 60_000, 60_000]],
])("pauses grow up to a limit: %j", (limits, pauses) => {
  let retry: RecordedRetry | undefined;
  const found = pauses.map(() => {
    retry = afterFailure(retry, now, limits);
    return remainingPauseMs(retry, now);
  });
  expect(found).toEqual(pauses);
});

test("a pause ends in time, and is bounded after the clock was set back", () => {
  const retry = afterFailure(undefined, now);
  expect(remainingPauseMs(undefined, now)).toBe(0);
  expect(remainingPauseMs(retry, now + 4_999)).toBe(1);
  expect(remainingPauseMs(retry, now + 5_000)).toBe(0);
  expect(remainingPauseMs(retry, now - 3_600_000)).toBe(300_000);
});
