import { create } from "@bufbuild/protobuf";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { expect, test } from "vitest";
import { runningMachine } from "../../../../test/support/machines/machine-object.ts";

import { node, runningService } from "../../../../test/support/controller/service-object.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { MachineObject, MachineSize } from "#fleet/machine/machine.ts";
import type { OperationObject } from "#operation/operation.ts";
import { planManagedService } from "../service/managed-service-plan.ts";
import type { ObservedService } from "../service/observed-service.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { advance } from "../service/service-advance.ts";
import { machineSizeOf, sizeForBoth } from "./service-size.ts";
import { beginResizing } from "./size-request.ts";
import { withoutResizing } from "./size-trial.ts";

const gib = 1024 ** 3;
const small = { planName: "tier-1", storageSizeGb: 1 };
const large = { planName: "tier-4", storageSizeGb: 10 };
const sizeOf = (size: typeof small) => machineSizeOf(size, defaultCatalog);

/** A service on its way, whose world a test moves. */
function underway(from: typeof small, to: typeof small) {
  const asked = beginResizing(runningService({}, from), to, defaultCatalog, { operationId: "op", now: 0 });
  let service: ManagedServiceObject = asked.after;
  let operation: OperationObject | undefined = asked.operation;
  let machine: MachineObject = runningMachine(node.id, sizeForBoth(sizeOf(from), sizeOf(to)));
  let told = { generation: 1, restartCount: 0, diskBytes: sizeOf(from).diskBytes };
  let now = 0;
  const has = (size: MachineSize, sizeProblem = "") => {
    machine = { ...machine, status: { ...machine.status, size, sizeProblem } };
  };
  has(sizeOf(from));

  function observed(): ObservedService {
    const { restartCount, generation, diskBytes } = told;
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
    /** The steps that come next; machines do as they are told. */
    steps() {
      const steps = planManagedService(service, observed());
      for (const step of steps)
        if (step.kind === "fitMachine") machine = { ...machine, spec: { ...machine.spec, ...step.size } };
      return steps.map(({ kind }) => kind);
    },
    /** The engine runs with the newest settings. */
    engineTookIt() {
      const { instanceGeneration: generation, restartCount } = service.spec;
      told = { generation, restartCount, diskBytes: machine.status.size?.diskBytes ?? 0 };
    },
    look() {
      now += 1_000;
      const looked = advance(service, observed(), operation, now, silentLog);
      ({ after: service, operation } = looked);
      return { ...looked, types: looked.events.map(({ type }) => type) };
    },
    waitFor(ms: number) {
      now += ms;
    },
    get machine() {
      return machine;
    },
  };
}

test("a machine is larger before its engine is told, and all is told once the file system has it", () => {
  const world = underway(small, large);
  expect(world.steps()).toEqual([]);
  expect(world.look().operation?.status).toMatchObject({ step: "ResizeServer", state: "running" });
  world.has(sizeOf(large));
  expect(world.steps()).toEqual(["converge"]);
  expect(world.look().operation?.status.step).toBe("ConfigureEngine");
  world.engineTookIt();
  const { after, operation, types } = world.look();
  expect(operation?.status.state).toBe("completed");
  expect(types).toContain("service.resized");
  expect(after.spec).toMatchObject(large);
  expect(after.spec.resizing).toBeUndefined();
});

test("a machine is made smaller once its engine does with less", () => {
  const world = underway({ ...large, storageSizeGb: 1 }, small);
  expect(world.machine.spec.memoryBytes).toBe(8 * gib);
  expect(world.steps()).toEqual(["converge"]);
  world.engineTookIt();
  expect(world.look().operation?.status.state).toBe("running");
  expect(world.steps()).toEqual(["fitMachine"]);
  expect(world.look().operation?.status.state).toBe("running");
  world.has(world.machine.spec);
  expect(world.machine.spec.memoryBytes).toBe(2 * gib);
  expect(world.look().operation?.status.state).toBe("completed");
});

test.each<[string, number, object]>([
  ["that cannot grow leaves the service as it was, without a restart", 1, { ...small, restartCount: 0 }],
  ["whose disk grew keeps that", 10, { planName: "tier-1", storageSizeGb: 10, restartCount: 0 }],
])("a machine %s", (_, madeGb, expected) => {
  const world = underway(small, large);
  world.look();
  world.has({ ...sizeOf(small), diskBytes: madeGb * gib }, "The host is full.");
  const back = world.look();
  expect(back.after.spec).toMatchObject(expected);
  expect(back.operation?.status).toMatchObject({ rollback: { code: "machine_failed" }, finishedAt: null });
  expect(world.steps()).toEqual(["fitMachine"]);
  world.has(world.machine.spec);
  expect(world.steps()).toEqual(["converge"]);
  world.engineTookIt();
  const { after, operation, types } = world.look();
  expect(operation?.status).toMatchObject({ state: "failed", error: { code: "rolled_back_machine_failed" } });
  expect(operation?.status.error?.message).toContain("The host is full.");
  expect(types).not.toContain("service.resized");
  expect(after.status.state).toBe("Running");
  expect(after.spec.resizing).toBeUndefined();
});

test("a service without a change of size is the very same object", () => {
  const service = runningService();
  expect(withoutResizing(service)).toBe(service);
});

test("what does not move for five minutes is rolled back", () => {
  const world = underway(small, large);
  world.look();
  world.waitFor(301_000);
  expect(world.look().operation?.status).toMatchObject({ rollback: { code: "not_healthy" }, finishedAt: null });
});
