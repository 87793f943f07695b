import { create } from "@bufbuild/protobuf";
import { RestoreFindingSchema } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { runningService } from "@holdfast/testing/controller/service-object.ts";
import type { MachineObject } from "#fleet/machine/machine.ts";
import { serviceSubject } from "../../service/managed-service.ts";
import { sourceOf } from "../archive/archive.ts";
import { pointWithin } from "./drill-creation.ts";
import { type ObservedDrill, planDrill } from "./drill-plan.ts";
import { nextDrillAt } from "./drill-schedule.ts";
import { advanceDrill } from "./drill-steps.ts";
import { type DrillObject, newDrillObject } from "./drill.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { backupOperations } from "../backup-operations.ts";

const minuteMs = 60_000;
const restores = [
  { restoreId: "r-1", backupId: "b-1", targetTime: null },
  { restoreId: "r-2", backupId: "b-0", targetTime: 5_000 },
];
const spec = { serviceId: "service-1", trigger: "request", operationId: "op-1", restores } as const;
const fresh = newDrillObject("d-1", "org", { ...spec, source: sourceOf(runningService()) }, 0);
const operation = newOperation({
  id: "op-1",
  subject: serviceSubject("service-1"),
  organizationId: "org",
  type: backupOperations.drill,
  now: 0,
});
const machine = runningMachine("m-1", { owner: { kind: "drill", id: "d-1" } });
const wellSeen: ObservedDrill = {
  machine,
  connected: true,
  instance: undefined,
  serviceExists: true,
  hasCapacity: true,
};

/** An agent's report of a finished restore, with the findings of its examination. */
function report(restoreId: string, generation: bigint, state = "running", findings: readonly boolean[] = [true]) {
  return create(InstanceObservationSchema, {
    state,
    generation,
    restore: {
      restoreId,
      state: "finished",
      findings: findings.map((passed) => ({ name: "structure", passed, detail: "words" })),
    },
  });
}

/** The drill after these observations, one a second. */
function looks(...observed: readonly Partial<ObservedDrill>[]) {
  let drill: DrillObject = fresh;
  let current = operation;
  const steps: string[] = [];
  const events: string[] = [];
  for (const [index, change] of observed.entries()) {
    const now = (index + 1) * 1_000;
    const step = planDrill(drill, { ...wellSeen, ...change }, now);
    const after = advanceDrill(drill, current, step, now, "m-1");
    steps.push(step.kind);
    events.push(...after.events.map(({ type }) => type));
    drill = after.drill;
    current = after.operation ?? current;
  }
  return { drill, operation: current, steps, events };
}

test("both restores are examined one after the other, then the machine is deleted", () => {
  const done = looks(
    { machine: undefined },
    {},
    { instance: report("r-1", 1n) },
    { instance: report("r-1", 1n) },
    { instance: report("r-2", 2n) },
    {},
    { machine: undefined },
  );
  expect(done.steps).toEqual(["begin", "deliver", "examined", "deliver", "examined", "deleteMachine", "settled"]);
  expect(done.drill.status).toMatchObject({ state: "completed", machineId: "m-1", error: null });
  expect(done.drill.status.checks.map(({ of }) => of)).toEqual(["backup", "backup", "target", "target"]);
  expect([done.operation.status.state, done.events]).toEqual(["completed", []]);
});

test("an invalid database passes, and the operation has one warning", () => {
  const finding = { name: "databases", passed: true, detail: "Database a is invalid." };
  const found = (restoreId: string, generation: bigint) => {
    const instance = report(restoreId, generation);
    instance.restore?.findings.push(create(RestoreFindingSchema, finding));
    return { instance };
  };
  const done = looks({ machine: undefined }, found("r-1", 1n), found("r-2", 2n));
  expect(done.drill.status.checks).toContainEqual({ ...finding, of: "target" });
  expect(done.operation.status).toMatchObject({ state: "completed", warnings: [finding.detail] });
});

// biome-ignore format: a table, aligned so that it reads as one
test.each<[string, Partial<ObservedDrill>, string]>([
  ["a failed finding",                 { instance: report("r-1", 1n, "running", [true, false]) },                               "check_failed"],
  ["a machine that cannot be created", { machine: { ...machine, status: { ...machine.status, state: "failed" } } as MachineObject }, "machine_failed"],
  ["a machine that was lost",          { machine: undefined },                                                              "machine_lost"],
  ["a service that was deleted",       { serviceExists: false },                                                                 "service_deleted"],
])("a drill fails, emits an event and deletes its machine after %s", (_what, observed, code) => {
  const { drill, operation: ended, events } = looks({ machine: undefined }, observed);
  expect(drill.status).toMatchObject({ state: "failed", error: { code } });
  expect(ended.status).toMatchObject({ state: "failed", error: { code } });
  expect(events).toEqual(["backup.drill_failed"]);
  expect(planDrill(drill, wellSeen, 3_000).kind).toBe("deleteMachine");
});

test("a drill that finds damage records the object, and says what to do", () => {
  const instance = report("r-1", 1n);
  const damagedObject = "services/s-1/log/0000000001/000000000002";
  Object.assign(instance.restore ?? {}, {
    state: "failed",
    errorCode: "damaged",
    reason: "it is absent",
    damagedObject,
  });
  const { drill } = looks({ machine: undefined }, { instance });
  expect(drill.status).toMatchObject({ state: "failed", damagedObject, error: { code: "damaged" } });
  expect(drill.status.error?.message).toMatch(/^it is absent\. .* restore to a time before it, or after /);
});

test("the machine of a drill that lacks memory gets it, and its restore is tried again", () => {
  const gib = 1024 ** 3;
  const instance = report("r-1", 1n);
  Object.assign(instance.restore ?? {}, { state: "failed", errorCode: "plan_too_small", reason: "Too little memory." });
  const replayMemory = { bytes: 8 * gib, refused: undefined };
  const { vcpu, rootBytes, diskBytes } = machine.spec;
  const larger = { ...machine, spec: { ...machine.spec, memoryBytes: 8 * gib } };
  const size = { vcpu, rootBytes, diskBytes, memoryBytes: 8 * gib };
  const sized = { ...larger, status: { ...larger.status, size } };
  const { steps, drill } = looks(
    { machine: undefined },
    { instance, replayMemory },
    { instance, replayMemory, machine: larger },
    { instance, replayMemory, machine: sized },
    { instance: report("r-1", 1n), machine: sized },
  );
  expect(steps).toEqual(["begin", "raiseMemory", "wait", "deliver", "examined"]);
  expect(drill.status.error).toBeNull();
  const refused = looks({ machine: undefined }, { instance, replayMemory: { bytes: 1, refused: "The host is full." } });
  expect(refused.drill.status.error).toEqual({
    code: "plan_too_small",
    message: "Too little memory. The host is full.",
  });
});

test("a drill without progress fails, pending or running", () => {
  for (const status of [fresh.status, { ...fresh.status, state: "running", machineId: "m-1" } as const]) {
    const late = planDrill({ ...fresh, status }, { ...wellSeen, hasCapacity: false, connected: false }, 31 * minuteMs);
    expect(late).toMatchObject({ kind: "fail", code: "timed_out" });
  }
});

test("the chosen moment is after the last gap and after the engine's start", () => {
  const span = { from: 0, to: 100_000 };
  expect(pointWithin(span, [], 20_000, 0)).toBe(30_000);
  expect(pointWithin(span, [{ from: 40_000, to: 60_000 }], 20_000, 0.5)).toBe(80_000);
  expect(pointWithin(span, [], undefined, 0.5)).toBe(100_000);
  expect(pointWithin(span, [], 95_000, 0.5)).toBe(100_000);
});

test("the next drill begins a week after the last one", () => {
  expect(nextDrillAt("service-1", [fresh], [])).toBe(7 * 24 * 60 * minuteMs);
  expect(nextDrillAt("service-1", [], [])).toBeUndefined();
});
