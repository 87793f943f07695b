import { expect, test } from "vitest";
import { appliesToEngine, metricCatalog, metricOf } from "./metric-catalog.ts";

test("names and numbers of metrics are unique", () => {
  expect(new Set(metricCatalog.map(({ name }) => name)).size).toBe(metricCatalog.length);
  expect(metricCatalog.map(({ slot }) => slot)).toEqual(metricCatalog.map((_, index) => index + 1));
});

test("a metric applies to its engines, or to all if it names none", () => {
  expect(["postgresql", "kafka"].map((engine) => appliesToEngine(metricOf("cpu")!, engine))).toEqual([true, true]);
  expect(["postgresql", "kafka"].map((engine) => appliesToEngine(metricOf("pg_locks")!, engine))).toEqual([
    true,
    false,
  ]);
  expect(metricOf("cpus")).toBeUndefined();
});
