import { expect, test } from "vitest";
import { currentRejections, acceptedParameters, emptyHistory, rejectChanges } from "./parameter-history.ts";

const refused = (message: string) => ({ message, parameter: undefined });
const before = { lastAccepted: { work_mem: "4MB" }, rejected: {} };

test("only the parameter named in the engine's message is rejected", () => {
  const tried = { work_mem: "4MB", shared_buffers: "1TB", jit: "off" };
  const after = rejectChanges(tried, before, refused("could not map memory for shared_buffers"));
  expect(after?.rejected).toEqual({
    shared_buffers: { value: "1TB", reason: "could not map memory for shared_buffers" },
  });
  expect(acceptedParameters(tried, after ?? emptyHistory)).toEqual({ work_mem: "4MB", jit: "off" });
});

test("a parameter whose name is part of the refused one is not rejected", () => {
  const tried = { work_mem: "8MB", maintenance_work_mem: "1kB" };
  const after = rejectChanges(tried, before, refused("PostgreSQL rejects maintenance_work_mem = 1kB."));
  expect(Object.keys(after?.rejected ?? {})).toEqual(["maintenance_work_mem"]);
});

test("all changes are rejected if the message names none of them", () => {
  const tried = { work_mem: "64MB", jit: "off" };
  const after = rejectChanges(tried, before, refused("killed"));
  expect(Object.keys(after?.rejected ?? {}).sort()).toEqual(["jit", "work_mem"]);
  expect(acceptedParameters(tried, after ?? emptyHistory)).toEqual({ work_mem: "4MB" });
});

test("nothing is rejected if nothing changed since the last successful start", () => {
  expect(rejectChanges({ work_mem: "4MB" }, before, refused("killed"))).toBeUndefined();
});

test("a new value is tried again", () => {
  const after = rejectChanges({ work_mem: "x" }, before, refused("work_mem")) ?? emptyHistory;
  expect(currentRejections({ work_mem: "x" }, after)).toHaveProperty("work_mem");
  expect(currentRejections({ work_mem: "8MB" }, after)).toEqual({});
  expect(acceptedParameters({ work_mem: "8MB" }, after)).toEqual({ work_mem: "8MB" });
});

test("the removal of a parameter can be rejected", () => {
  const after = rejectChanges({}, before, refused("work_mem is needed")) ?? emptyHistory;
  expect(acceptedParameters({}, after)).toEqual({ work_mem: "4MB" });
});
