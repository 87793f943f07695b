import { expect, test } from "vitest";
import { isOfEngine, metricCatalogue, metricOf } from "./metric-catalogue.ts";

test("no two metrics share a name or a place in samples", () => {
  expect(new Set(metricCatalogue.map(({ name }) => name)).size).toBe(metricCatalogue.length);
  expect(metricCatalogue.map(({ slot }) => slot)).toEqual(metricCatalogue.map((_, index) => index + 1));
});

test("a metric of all engines is one of each, and others are of theirs alone", () => {
  expect(["postgresql", "kafka"].map((engine) => isOfEngine(metricOf("cpu")!, engine))).toEqual([true, true]);
  expect(["postgresql", "kafka"].map((engine) => isOfEngine(metricOf("pg_locks")!, engine))).toEqual([true, false]);
  expect(metricOf("cpus")).toBeUndefined();
});
