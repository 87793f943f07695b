import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";

import { node, runningService } from "@holdfast/testing/controller/service-object.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { OperationObject } from "#operation/operation.ts";
import { planManagedService } from "../service/reconcile/managed-service-plan.ts";
import type { ObservedService } from "../service/reconcile/observed-service.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { advance } from "../service/reconcile/service-advance.ts";
import { machineSizeOf, largerOfEach } from "./service-size.ts";
import { beginResizing } from "./size-request.ts";
import { withoutResizing } from "./resize-outcome.ts";

const gib = 1024 ** 3;
const small = { planName: "tier-1", storageSizeGb: 1 };
const large = { planName: "tier-4", storageSizeGb: 10 };
const sizeOf = (size: typeof small) => machineSizeOf(size, defaultCatalog);

/** A service during a change of size, whose observed state the test changes. */
function underway(from: typeof small, to: typeof small) {
  const requested = beginResizing(runningService({}, from), to, defaultCatalog, { operationId: "op", now: 0 });
  let service: ManagedServiceObject = requested.after;
  let operation: OperationObject | undefined = requested.operation;
  let machine: MachineObject = runningMachine(node.id, largerOfEach(sizeOf(from), sizeOf(to)));
  let reported = { generation: 1, restartCount: 0, diskBytes: sizeOf(from).diskBytes };
  let now = 0;
  const has = (size: MachineSize, sizeProblem = "") => {
    machine = { ...machine, status: { ...machine.status, size, sizeProblem } };
  };
  has(sizeOf(from));

  function observed(): ObservedService {
    const { restartCount, generation, diskBytes } = reported;
    const instance = create(InstanceObservationSchema, {
      state: "running",
      generation: BigInt(generation),
      restartCount: BigInt(restartCount),
      diskBytes: BigInt(diskBytes),
      checks: [{ name: "liveness", status: "healthy" }],
    });
    const one = {
      node,
      machine,
      instance,
      connected: true,
      isCurrent: true,
      stoppedForDrain: false,
      silentHost: undefined,
    };
    return { nodes: [one], names: "verified", isChanging: false };
  }

  return {
    has,
    /** The next steps; machines perform them. */
    steps() {
      const steps = planManagedService(service, observed());
      for (const step of steps)
        if (step.kind === "fitMachine") machine = { ...machine, spec: { ...machine.spec, ...step.size } };
      return steps.map(({ kind }) => kind);
    },
    /** The engine runs with the newest settings. */
    applySettings() {
      const { instanceGeneration: generation, restartCount } = service.spec;
      reported = { generation, restartCount, diskBytes: machine.status.size?.diskBytes ?? 0 };
    },
    advance() {
      now += 1_000;
      const advanced = advance(service, observed(), operation, now, silentLog);
      ({ after: service, operation } = advanced);
      return { ...advanced, types: advanced.events.map(({ type }) => type) };
    },
    waitFor(ms: number) {
      now += ms;
    },
    get machine() {
      return machine;
    },
  };
}

test("a machine grows before its engine gets the settings, and the file system is last", () => {
  const scenario = underway(small, large);
  expect(scenario.steps()).toEqual([]);
  expect(scenario.advance().operation?.status).toMatchObject({ step: "ResizeServer", state: "running" });
  scenario.has(sizeOf(large));
  expect(scenario.steps()).toEqual(["converge"]);
  expect(scenario.advance().operation?.status.step).toBe("ConfigureEngine");
  scenario.applySettings();
  const { after, operation, types } = scenario.advance();
  expect(operation?.status.state).toBe("completed");
  expect(types).toContain("service.resized");
  expect(after.spec).toMatchObject(large);
  expect(after.spec.resizing).toBeUndefined();
});

test("a machine shrinks after its engine applied the settings", () => {
  const scenario = underway({ ...large, storageSizeGb: 1 }, small);
  expect(scenario.machine.spec.memoryBytes).toBe(8 * gib);
  expect(scenario.steps()).toEqual(["converge"]);
  scenario.applySettings();
  expect(scenario.advance().operation?.status.state).toBe("running");
  expect(scenario.steps()).toEqual(["fitMachine"]);
  expect(scenario.advance().operation?.status.state).toBe("running");
  scenario.has(scenario.machine.spec);
  expect(scenario.machine.spec.memoryBytes).toBe(2 * gib);
  expect(scenario.advance().operation?.status.state).toBe("completed");
});

test.each<[string, number, object]>([
  ["that cannot grow leaves the service as it was, without a restart", 1, { ...small, restartCount: 0 }],
  ["whose disk grew keeps that", 10, { planName: "tier-1", storageSizeGb: 10, restartCount: 0 }],
])("a machine %s", (_, madeGb, expected) => {
  const scenario = underway(small, large);
  scenario.advance();
  scenario.has({ ...sizeOf(small), diskBytes: madeGb * gib }, "The host is full.");
  const back = scenario.advance();
  expect(back.after.spec).toMatchObject(expected);
  expect(back.operation?.status).toMatchObject({ rollback: { code: "machine_failed" }, finishedAt: null });
  expect(scenario.steps()).toEqual(["fitMachine"]);
  scenario.has(scenario.machine.spec);
  expect(scenario.steps()).toEqual(["converge"]);
  scenario.applySettings();
  const { after, operation, types } = scenario.advance();
  expect(operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_machine_failed" } });
  expect(operation?.status.error?.message).toContain("The host is full.");
  expect(types).not.toContain("service.resized");
  expect(after.status.state).toBe("Running");
  expect(after.spec.resizing).toBeUndefined();
});

test("a service without a change of size is the same object", () => {
  const service = runningService();
  expect(withoutResizing(service)).toBe(service);
});

test("a change of size without progress for five minutes is rolled back", () => {
  const scenario = underway(small, large);
  scenario.advance();
  scenario.waitFor(301_000);
  expect(scenario.advance().operation?.status).toMatchObject({ rollback: { code: "not_healthy" }, finishedAt: null });
});
