import type { MetricSeries } from "@holdfast/sdk/responses.ts";
import { expect, test } from "vitest";
import { markersOf, rangeOfPeriod, rowsOf, shifted, thresholdsOf, widened, zoomedIn, zoomOf } from "./chart-overlay.ts";

const now = Date.parse("2030-01-01T01:00:00Z");
const event = (event_type: "service.failed_over" | "service.running" | "webhook.test", minute: number) => ({
  event_type,
  timestamp: `2030-01-01T00:${String(minute).padStart(2, "0")}:00Z`,
});

test("markers are the events of the period that change a service, in the order of time", () => {
  const events = [event("service.running", 40), event("service.failed_over", 30), event("webhook.test", 35)];
  const range = { from: now / 1_000 - 1_900, to: now / 1_000 };
  expect(markersOf(events, range).map(({ number, title }) => [number, title])).toEqual([
    [1, "Service failed over"],
    [2, "Service running"],
  ]);
  expect(markersOf(events, { from: range.to - 60, to: range.to })).toEqual([]);
});

test("at most 20 markers are drawn, the newest", () => {
  const events = Array.from({ length: 40 }, (_, minute) => event("service.running", minute));
  const markers = markersOf(events, { from: 0, to: now });
  expect(markers).toHaveLength(20);
  expect(markers.at(-1)).toMatchObject({ number: 20, time: Date.parse("2030-01-01T00:39:00Z") / 1_000 });
});

test("a threshold is the line of a rule of the metric that is not paused", () => {
  const rule = { metric: "cpu", condition: "gt" as const, threshold: 80, name: "busy", paused: false };
  const rules = [rule, { ...rule, paused: true }, { ...rule, metric: "memory" }];
  expect(thresholdsOf(rules, "cpu", "percent")).toEqual([{ value: 80, text: "busy: above 80%" }]);
});

test("a zoom is in the address, and an invalid one is none", () => {
  const query = (text: string) => zoomOf(new URLSearchParams(text));
  expect(query("from=2030-01-01T00:00:00Z&to=2030-01-01T00:10:00Z")).toEqual({
    from: now / 1_000 - 3_600,
    to: now / 1_000 - 3_000,
  });
  for (const text of ["", "from=x&to=y", "from=2030-01-01T00:10:00Z&to=2030-01-01T00:00:00Z"])
    expect(query(text)).toBeUndefined();
});

test("a short selection becomes five minutes long", () => {
  expect(widened({ from: 1_000, to: 1_060 })).toEqual({ from: 880, to: 1_180 });
  expect(widened({ from: 1_000, to: 2_000.5 })).toEqual({ from: 1_000, to: 2_001 });
});

test("a range is zoomed and shifted by keys, not after now", () => {
  expect(zoomedIn({ from: 0, to: 4_000 })).toEqual({ from: 1_000, to: 3_000 });
  expect(zoomedIn({ from: 0, to: 300 })).toEqual({ from: 0, to: 300 });
  expect(shifted({ from: 1_000, to: 2_000 }, -1, 2_000_000)).toEqual({ from: 500, to: 1_500 });
  expect(shifted({ from: 1_000, to: 2_000 }, 1, 2_200_000)).toEqual({ from: 1_200, to: 2_200 });
});

test("a period ends now", () =>
  expect(rangeOfPeriod("6h", now)).toEqual({ from: now / 1_000 - 21_600, to: now / 1_000 }));

test("the table has the newest points of all nodes", () => {
  const points: MetricSeries["points"] = [
    [60, 1, 0, 2],
    [120, 3, 2, 4],
  ];
  const series = { metric: "cpu", unit: "percent", node_id: "n", role: "primary" as const };
  const rows = rowsOf([
    { ...series, points },
    { ...series, points: [[120, 9, 9, 9]] },
  ]);
  expect(rows.map(({ time, node, average }) => [time, node, average])).toEqual([
    [120, 0, "3%"],
    [120, 1, "9%"],
    [60, 0, "1%"],
  ]);
});
