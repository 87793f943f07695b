import { expect, test } from "vitest";
import { currentRejections, effectiveParameters, noHistory, rejectChanges } from "./parameter-history.ts";

const said = (message: string) => ({ message, parameter: undefined });
const before = { lastGood: { work_mem: "4MB" }, rejected: {} };

test("a parameter that the engine's words name is rejected alone", () => {
  const tried = { work_mem: "4MB", shared_buffers: "1TB", jit: "off" };
  const after = rejectChanges(tried, before, said("could not map memory for shared_buffers"));
  expect(after?.rejected).toEqual({
    shared_buffers: { value: "1TB", reason: "could not map memory for shared_buffers" },
  });
  expect(effectiveParameters(tried, after ?? noHistory)).toEqual({ work_mem: "4MB", jit: "off" });
});

test("a name that is part of the named one is not rejected", () => {
  const tried = { work_mem: "8MB", maintenance_work_mem: "1kB" };
  const after = rejectChanges(tried, before, said("PostgreSQL does not take maintenance_work_mem = 1kB."));
  expect(Object.keys(after?.rejected ?? {})).toEqual(["maintenance_work_mem"]);
});

test("all changes are rejected when the words name none of them", () => {
  const tried = { work_mem: "64MB", jit: "off" };
  const after = rejectChanges(tried, before, said("killed"));
  expect(Object.keys(after?.rejected ?? {}).sort()).toEqual(["jit", "work_mem"]);
  expect(effectiveParameters(tried, after ?? noHistory)).toEqual({ work_mem: "4MB" });
});

test("nothing is rejected when nothing changed since the last good start", () => {
  expect(rejectChanges({ work_mem: "4MB" }, before, said("killed"))).toBeUndefined();
});

test("a new value gets a new chance", () => {
  const after = rejectChanges({ work_mem: "x" }, before, said("work_mem")) ?? noHistory;
  expect(currentRejections({ work_mem: "x" }, after)).toHaveProperty("work_mem");
  expect(currentRejections({ work_mem: "8MB" }, after)).toEqual({});
  expect(effectiveParameters({ work_mem: "8MB" }, after)).toEqual({ work_mem: "8MB" });
});

test("taking a parameter away can be rejected too", () => {
  const after = rejectChanges({}, before, said("work_mem is needed")) ?? noHistory;
  expect(effectiveParameters({}, after)).toEqual({ work_mem: "4MB" });
});
