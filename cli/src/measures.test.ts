import { expect, test } from "vitest";
import { measureOf, measureText, withoutUnit } from "./measures.ts";

test.each([
  ["size_bytes", 7_864_320, "7.86 MB"],
  ["visibility_timeout_seconds", 30, "30s"],
  ["visibility_timeout_seconds", 60, "1m"],
  ["age_seconds", 90, "90s"],
  ["age_seconds", 5_400, "90m"],
  ["lag_seconds", 0.25, "250ms"],
  ["lag_seconds", 0, "0s"],
  ["oldest_age_seconds", 200_000, "2.31d"],
  ["total_time", 0.163_704_000_000_000_02, "0.164ms"],
  ["total_time", 1_999.4, "1999ms"],
  ["mean_time", 12_345.6, "12.3s"],
  ["duration_ms", 1_000, "1s"],
  ["progress_pct", 41.666_666, "41.7%"],
])("%s of %d is printed as %s", (column, value, text) => {
  const measure = measureOf(column);
  expect(measure && measureText(value, measure)).toBe(text);
});

test.each(["calls", "max_attempts", "rows", "created_at", "cache_hit_ratio"])("%s has no unit", (column) => {
  expect(measureOf(column)).toBeUndefined();
});

test("a title has no unit that the numbers have", () => {
  expect(["age_seconds", "size_bytes", "total_time"].map(withoutUnit)).toEqual(["age", "size", "total_time"]);
});
