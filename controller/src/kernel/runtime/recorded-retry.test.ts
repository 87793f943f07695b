import { expect, test } from "vitest";
import { afterFailure, pauseLeftMs, type RecordedRetry } from "./recorded-retry.ts";

const now = 1_000_000;

test.each([
  [{}, [5_000, 25_000, 125_000, 300_000, 300_000]],
  [{ maxMs: 60_000 }, [5_000, 25_000, 60_000, 60_000, 60_000]],
])("pauses grow up to a limit: %j", (limits, pauses) => {
  let retry: RecordedRetry | undefined;
  const found = pauses.map(() => {
    retry = afterFailure(retry, now, limits);
    return pauseLeftMs(retry, now);
  });
  expect(found).toEqual(pauses);
});

test("a pause ends in time, and is bounded after the clock was set back", () => {
  const retry = afterFailure(undefined, now);
  expect(pauseLeftMs(undefined, now)).toBe(0);
  expect(pauseLeftMs(retry, now + 4_999)).toBe(1);
  expect(pauseLeftMs(retry, now + 5_000)).toBe(0);
  expect(pauseLeftMs(retry, now - 3_600_000)).toBe(300_000);
});
