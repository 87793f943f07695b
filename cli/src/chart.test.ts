import { expect, test } from "vitest";
import { drawChart, shortFigure, timeAxis } from "./chart.ts";

test("a column shows the highest average of its interval, and is empty without samples", () => {
  const area = { fromS: 0, toS: 60, width: 6, height: 2 };
  const points = [
    [0, 100, 0, 100],
    [10, 50, 0, 90],
    [12, 75, 0, 90],
    [30, 0, 0, 0],
    [50, 12.5, 0, 20],
    [60, 100, 100, 100],
  ] as const;
  expect(drawChart(points, 100, area)).toEqual(["█▄    ", "██ ▁ ▂"]);
  expect(drawChart([], 0, area)).toEqual(["      ", "      "]);
});

test.each([
  [12.345, "percent", "12.3%"],
  [0, "percent", "0%"],
  [0.123, "per second", "0.12/s"],
  [1_234_567, "bytes per second", "1.23 MB/s"],
  [999, "bytes", "999B"],
  [5.6e9, "bytes", "5.60 GB"],
  [7, "count", "7"],
])("%d %s is %s", (value, unit, text) => {
  expect(shortFigure(value, unit)).toBe(text);
});

test("the time axis has the times of both ends, with the day for more than one", () => {
  const toS = Date.parse("2030-01-31T12:05:00Z") / 1_000;
  expect(timeAxis({ fromS: toS - 3_600, toS, width: 20, height: 4 })).toBe("11:05          12:05 UTC");
  expect(timeAxis({ fromS: toS - 604_800, toS, width: 30, height: 4 })).toBe("01-24 12:05        01-31 12:05 UTC");
  expect(timeAxis({ fromS: toS - 900, toS, width: 5, height: 4 })).toBe("11:50 12:05 UTC");
});
