import { create } from "@bufbuild/protobuf";
import { WorkloadSpecSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { expect, test } from "vitest";
import { commonOf, convergence } from "./workload-delivery.ts";

const engine = create(WorkloadSpecSchema, {
  workload: { case: "engine", value: { serviceId: "s", generation: 3n, term: 2n, running: true } },
});
const fixture = create(WorkloadSpecSchema, {
  workload: { case: "fixture", value: { message: "hello" } },
  ownerId: "o",
  generation: 5n,
  term: 4n,
});

test("an agent gets an engine as a workload if it reports the kind, and by itself if it reports none", () => {
  expect(convergence(engine, ["engine"])).toMatchObject({ workload: engine });
  expect(convergence(engine, ["engine"])?.instance).toBeUndefined();
  expect(convergence(engine, [])).toMatchObject({ instance: { serviceId: "s" } });
  expect(convergence(engine, [])?.workload).toBeUndefined();
});

test("an agent gets another kind only if it reports it", () => {
  expect(convergence(fixture, ["engine", "fixture"])).toMatchObject({ workload: fixture });
  expect([convergence(fixture, ["engine"]), convergence(fixture, [])]).toEqual([undefined, undefined]);
});

test("the header of a delivery is that of an engine's own spec, or the common fields", () => {
  expect(commonOf(engine)).toEqual({ ownerId: "s", generation: 3n, term: 2n, running: true });
  expect(commonOf(fixture)).toMatchObject({ ownerId: "o", generation: 5n, term: 4n, running: false });
});
