import { expect, test } from "vitest";
import type { MetricSeries } from "@holdfast/sdk/responses.ts";
import { columnsOf, newestOf } from "./chart-view.ts";

const series = (points: MetricSeries["points"], node = "0123456789"): MetricSeries => ({
  metric: "cpu",
  unit: "percent",
  node_id: node,
  role: "primary",
  points,
});

test("an interval without a sample is a gap", () => {
  const columns = columnsOf(
    [
      series([
        [60, 1, 0, 2],
        [240, 4, 3, 5],
      ]),
    ],
    "1m",
  );
  expect(columns.times).toEqual([60, 120, 180, 240]);
  expect(columns.values).toEqual([
    [1, null, null, 4],
    [2, null, null, 5],
    [0, null, null, 3],
  ]);
  expect(columns.nodes).toEqual(["primary"]);
});

test("nodes share the times, and a node without samples has no line", () => {
  const { times, values } = columnsOf([series([[60, 1, 1, 1]]), series([]), series([[120, 2, 2, 2]])], "1m");
  expect(times).toEqual([60, 120]);
  expect(values).toHaveLength(6);
});

test("nodes of one role are numbered", () => {
  const point: MetricSeries["points"] = [[60, 1, 1, 1]];
  const replica = { ...series(point), role: "replica" as const };
  expect(columnsOf([series(point), replica, replica], "1m").nodes).toEqual(["primary", "replica", "replica 2"]);
});

test("without samples there is nothing to draw", () => {
  expect(columnsOf([], "1m")).toEqual({ times: [], values: [], nodes: [] });
  expect(newestOf([series([])])).toBeUndefined();
  expect(newestOf([series([[60, 7, 0, 9]])])).toBe(7);
});
