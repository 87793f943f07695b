import { expect, test } from "vitest";
import { databaseEngines } from "./engine-catalog/engine-catalog.ts";
import { appliesToEngine, gatherMetrics, metricCatalog, metricOf } from "./metric-catalog.ts";

test("names and numbers of metrics are unique", () => {
  const [cpu, memory] = [metricOf("cpu")!, metricOf("memory")!];
  const other = { ...cpu, name: "cores" };
  expect(() => gatherMetrics({ one: [cpu], two: [memory, other] })).toThrow("one and two both have number 1");
  expect(() => gatherMetrics({ one: [cpu], two: [{ ...cpu, number: 99 }] })).toThrow("one and two both have cpu");
  expect(metricCatalog.map(({ number }) => number)).toEqual(metricCatalog.map((_, index) => index + 1));
});

test("a metric applies to its engines, or to all if it names none", () => {
  expect(["postgresql", "kafka"].map((engine) => appliesToEngine(metricOf("cpu")!, engine))).toEqual([true, true]);
  expect(["postgresql", "kafka"].map((engine) => appliesToEngine(metricOf("pg_locks")!, engine))).toEqual([
    true,
    false,
  ]);
  expect(metricOf("cpus")).toBeUndefined();
});

test("hosted apps have metrics of machines only, and files services no lag of replicas", () => {
  const namesOf = (software: string) =>
    metricCatalog.filter((metric) => appliesToEngine(metric, software)).map(({ name }) => name);
  expect(namesOf("app")).toEqual(["cpu", "memory", "disk", "disk_iops", "network_in", "network_out", "health"]);
  expect(namesOf("files")).toContain("connections");
  for (const name of ["replication_lag_seconds", "replication_lag_bytes"]) {
    expect(namesOf("files")).not.toContain(name);
    for (const { engine } of databaseEngines) expect(namesOf(engine), engine).toContain(name);
  }
});
