import { expect, test } from "vitest";
import { isOfEngine, metricCatalog, metricOf } from "./metric-catalog.ts";

test("no two metrics share a name or a place in samples", () => {
  expect(new Set(metricCatalog.map(({ name }) => name)).size).toBe(metricCatalog.length);
  expect(metricCatalog.map(({ slot }) => slot)).toEqual(metricCatalog.map((_, index) => index + 1));
});

test("a metric of all engines is one of each, and others are of theirs alone", () => {
  expect(["postgresql", "kafka"].map((engine) => isOfEngine(metricOf("cpu")!, engine))).toEqual([true, true]);
  expect(["postgresql", "kafka"].map((engine) => isOfEngine(metricOf("pg_locks")!, engine))).toEqual([true, false]);
  expect(metricOf("cpus")).toBeUndefined();
});
