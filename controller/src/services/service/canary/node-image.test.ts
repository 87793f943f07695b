import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createServiceScenario,
  faultsOfImages,
  faultsOfKernels,
} from "@holdfast/testing/controller/service-scenario.ts";

describe("another image", () => {
  function afterMaintenance(
    image: (typeof faultsOfImages)[number] | undefined,
    { machineIsSlow = false, acceptsTextOrder = false } = {},
  ) {
    const scenario = createServiceScenario({ image });
    for (let i = 0; i < 8; i++) scenario.round(1_000);
    expect(scenario.service?.status).toMatchObject({ state: "Running", health: { status: "healthy" } });
    scenario.maintain(acceptsTextOrder);
    const states = new Set<string>();
    for (let i = 0; i < 400 && scenario.service?.status.operationId !== null; i++) {
      scenario.round(5_000, machineIsSlow && i % 3 !== 0);
      states.add(scenario.service?.status.state ?? "");
    }
    expect(states).toEqual(new Set(["Upgrading", "Running"]));
    expect(scenario.service?.status).toMatchObject({ state: "Running", operationId: null });
    return scenario;
  }

  test("is under the data when the operation is over", () => {
    const { placed: machineOf, operation, service } = afterMaintenance(undefined);
    expect([machineOf, operation.status.state, service?.spec.image]).toEqual(["new", "completed", "new"]);
    expect(service?.status.maintenance.refused).toBeNull();
  });

  test("that changes the sort order of text is retained if the user accepted that", () => {
    const { placed: machineOf, operation } = afterMaintenance("order texts alike", { acceptsTextOrder: true });
    expect([machineOf, operation.status.state]).toEqual(["new", "completed"]);
  });

  test.each(faultsOfImages)("that does not %s is rolled back, and remembered", (fault) => {
    const { placed: machineOf, operation, service } = afterMaintenance(fault);
    expect([machineOf, operation.status.state, service?.spec.image]).toEqual(["old", "failed", "old"]);
    expect(operation.status.error?.message).toContain("runs from 17.0 again");
    expect(service?.status.maintenance.refused).toMatchObject({ image: "new" });
  });

  test("that damages the data is rolled back with the data, and no client's write is lost", () => {
    const { data, operation } = afterMaintenance("keep the data");
    expect(data).toMatchObject({ damaged: false, writes: data.acknowledged });
    expect(data.writes).toBeGreaterThan(0);
    expect(operation.status.outcome?.snapshot).toEqual({ outcome: "restored", reason: "" });
    expect(operation.status.error?.message).toContain("as they were before");
  });

  test("admits clients again at the end, and leaves no snapshot", () => {
    for (const fault of [undefined, ...faultsOfImages]) {
      const scenario = afterMaintenance(fault);
      const { acknowledged } = scenario.data;
      for (let i = 0; i < 4; i++) scenario.round(1_000);
      expect(scenario.data.acknowledged).toBeGreaterThan(acknowledged);
      expect(scenario.data).toMatchObject({ writes: scenario.data.acknowledged, snapshots: 0 });
    }
  });

  test("that prevents a machine's start is rolled back, however long the machine reports it", () => {
    const { placed: machineOf, operation } = afterMaintenance("start the machine", { machineIsSlow: true });
    expect([machineOf, operation.status.state]).toEqual(["old", "failed"]);
    expect(operation.status.error?.code).toBe("rolled_back_machine_failed");
  });
});

describe("another kernel of a virtual machine", () => {
  function afterMaintenance(
    broken: Parameters<typeof createServiceScenario>[0],
    created: Parameters<typeof createServiceScenario>[1] = { image: "new", guestKernel: "guest-old" },
  ) {
    const scenario = createServiceScenario(broken, created);
    for (let i = 0; i < 8; i++) scenario.round(1_000);
    scenario.maintain();
    const steps = new Set<string>();
    for (let i = 0; i < 400 && scenario.service?.status.operationId !== null; i++) {
      scenario.round(5_000);
      steps.add(scenario.operation.status.step ?? "");
    }
    for (let i = 0; i < 4; i++) scenario.round(1_000);
    expect(scenario.service?.status).toMatchObject({ state: "Running", operationId: null });
    expect(scenario.data).toMatchObject({ writes: scenario.data.acknowledged, damaged: false, snapshots: 0 });
    return { ...scenario, steps };
  }

  test("is what the machine boots from when the operation is over, under the same image", () => {
    const { placed: machineOf, booted, operation, service, steps } = afterMaintenance({});
    expect([machineOf, booted, operation.status.state]).toEqual(["new", "guest-new", "completed"]);
    expect(service?.spec).toMatchObject({ image: "", guestKernel: "guest-new" });
    expect(service?.status.maintenance).toMatchObject({ refused: null, refusedGuestKernel: null });
    expect(steps).toContain("StopServer");
    expect(steps).not.toContain("ReplaceImage");
  });

  test.each(faultsOfKernels)("that does not %s is rolled back, and remembered", (kernel) => {
    const { placed: machineOf, booted, operation, service, steps } = afterMaintenance({ kernel });
    expect([machineOf, booted, operation.status.state]).toEqual(["new", "guest-old", "failed"]);
    expect(operation.status.error?.message).toContain("runs from Linux 6.12.0 again");
    expect(steps).toContain("RollBackGuestKernel");
    expect(service?.status.maintenance).toMatchObject({ refused: null, refusedGuestKernel: { image: "guest-new" } });
  });

  test("comes with an image by one operation", () => {
    const {
      placed: machineOf,
      booted,
      operation,
      service,
    } = afterMaintenance({}, { image: "old", guestKernel: "guest-old" });
    expect([machineOf, booted, operation.metadata.id]).toEqual(["new", "guest-new", "op-1"]);
    expect(service?.spec.restartCount).toBe(0);
  });

  test.each([{ kernel: "connect" }, { image: "start the engine" }] as const)(
    "is rolled back together with its image if one of both failed (%j)",
    (broken) => {
      const {
        placed: machineOf,
        booted,
        operation,
        service,
      } = afterMaintenance(broken, {
        image: "old",
        guestKernel: "guest-old",
      });
      expect([machineOf, booted]).toEqual(["old", "guest-old"]);
      expect(operation.status.error?.message).toContain("runs from 17.0 and Linux 6.12.0 again");
      expect(service?.status.maintenance).toMatchObject({
        refused: { image: "new" },
        refusedGuestKernel: { image: "guest-new" },
      });
    },
  );
});

describe("a start of the machine for a newer keeper", () => {
  function afterMaintenance(created: Parameters<typeof createServiceScenario>[1]) {
    const scenario = createServiceScenario({}, created);
    for (let i = 0; i < 8; i++) scenario.round(1_000);
    const { acknowledged } = scenario.data;
    scenario.maintain();
    const steps: (string | null)[] = [];
    for (let i = 0; i < 40 && scenario.service?.status.operationId !== null; i++) {
      scenario.round(1_000);
      if (steps.at(-1) !== scenario.operation.status.step) steps.push(scenario.operation.status.step);
    }
    expect(scenario.service?.status).toMatchObject({ state: "Running", operationId: null });
    expect(scenario.operation.status.state).toBe("completed");
    for (let i = 0; i < 4; i++) scenario.round(1_000);
    expect(scenario.data.acknowledged).toBeGreaterThan(acknowledged);
    return { ...scenario, steps };
  }

  test("ends with it, from the same image, and takes no snapshot", () => {
    const {
      placed: machineOf,
      keeper,
      data,
      service,
      operation,
      steps,
    } = afterMaintenance({ image: "new", keeper: 3 });
    expect([machineOf, keeper, data.snapshots]).toEqual(["new", 5, 0]);
    expect(service?.spec).toMatchObject({ image: "", machineStarts: 1, restartCount: 0 });
    expect(operation.spec.work).toMatchObject({ updates: ["keeper-5"], startsMachines: true, image: null });
    expect(steps).toContain("StopEngine");
    expect(steps).toContain("StopServer");
  });

  test("comes with another image by one start", () => {
    const { placed: machineOf, keeper, service, operation } = afterMaintenance({ image: "old", keeper: 0 });
    expect([machineOf, keeper, operation.metadata.id]).toEqual(["new", 5, "op-1"]);
    expect(operation.spec.work).toMatchObject({ updates: ["new", "keeper-5"] });
    expect(service?.spec.machineStarts).toBeUndefined();
  });
});

test("no acknowledged write is lost, in any order of silence, with any image or kernel", () => {
  const rounds = fc.array(fc.tuple(fc.constantFrom(200, 5_000, 120_000), fc.boolean(), fc.boolean(), fc.nat(9)), {
    minLength: 20,
    maxLength: 120,
  });
  const kernels = fc.constantFrom(undefined, "good" as const, ...faultsOfKernels);
  fc.assert(
    fc.property(
      fc.constantFrom(undefined, ...faultsOfImages),
      kernels,
      fc.boolean(),
      rounds,
      (image, kernel, isChanging, all) => {
        const isVirtual = kernel !== undefined;
        const scenario = createServiceScenario(
          { image, ...(isVirtual && kernel !== "good" && { kernel }) },
          { image: "old", ...(isVirtual && { guestKernel: "guest-old" }) },
        );
        for (let i = 0; i < 8; i++) scenario.round(1_000);
        for (const [elapsedMs, silent, waits, request] of all) {
          if (request === 0) scenario.maintain();
          if (request === 1) scenario.command("start");
          scenario.silence(silent && request < 6);
          scenario.change(isChanging && request < 4);
          scenario.round(elapsedMs, waits);
          expect(scenario.data.writes).toBe(scenario.data.acknowledged);
        }
      },
    ),
    { numRuns: 500 },
  );
});
