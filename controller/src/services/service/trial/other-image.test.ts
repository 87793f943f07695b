import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  createServiceWorld,
  faultsOfImages,
  faultsOfKernels,
} from "../../../../../test/support/controller/service-world.ts";

describe("another image", () => {
  function afterMaintenance(
    image: (typeof faultsOfImages)[number] | undefined,
    { machineIsSlow = false, acceptsTextOrder = false } = {},
  ) {
    const world = createServiceWorld({ image });
    for (let i = 0; i < 8; i++) world.round(1_000);
    expect(world.service?.status).toMatchObject({ state: "Running", health: { status: "healthy" } });
    world.maintain(acceptsTextOrder);
    const states = new Set<string>();
    for (let i = 0; i < 400 && world.service?.status.operationId !== null; i++) {
      world.round(5_000, machineIsSlow && i % 3 !== 0);
      states.add(world.service?.status.state ?? "");
    }
    expect(states).toEqual(new Set(["Upgrading", "Running"]));
    expect(world.service?.status).toMatchObject({ state: "Running", operationId: null });
    return world;
  }

  test("is under the data when the operation is over", () => {
    const { placed, operation, service } = afterMaintenance(undefined);
    expect([placed, operation.status.state, service?.spec.image]).toEqual(["new", "completed", "new"]);
    expect(service?.status.maintenance.refused).toBeNull();
  });

  test("that does not order texts alike stays where that was accepted", () => {
    const { placed, operation } = afterMaintenance("order texts alike", { acceptsTextOrder: true });
    expect([placed, operation.status.state]).toEqual(["new", "completed"]);
  });

  test.each(faultsOfImages)("that does not %s is rolled back, and remembered", (fault) => {
    const { placed, operation, service } = afterMaintenance(fault);
    expect([placed, operation.status.state, service?.spec.image]).toEqual(["old", "failed", "old"]);
    expect(operation.status.error?.message).toContain("runs from 17.0 again");
    expect(service?.status.maintenance.refused).toMatchObject({ image: "new" });
  });

  test("that damages the data is rolled back with the data as they were, and nothing that clients wrote is lost", () => {
    const { data, operation } = afterMaintenance("keep the data");
    expect(data).toMatchObject({ spoilt: false, writes: data.acknowledged });
    expect(data.writes).toBeGreaterThan(0);
    expect(operation.status.outcome?.snapshot).toEqual({ outcome: "restored", reason: "" });
    expect(operation.status.error?.message).toContain("as they were before");
  });

  test("admits clients again at the end, and leaves no snapshot", () => {
    for (const fault of [undefined, ...faultsOfImages]) {
      const world = afterMaintenance(fault);
      const { acknowledged } = world.data;
      for (let i = 0; i < 4; i++) world.round(1_000);
      expect(world.data.acknowledged).toBeGreaterThan(acknowledged);
      expect(world.data).toMatchObject({ writes: world.data.acknowledged, snapshots: 0 });
    }
  });

  test("that keeps a machine from starting is rolled back, however long the machine tells of that", () => {
    const { placed, operation } = afterMaintenance("start the machine", { machineIsSlow: true });
    expect([placed, operation.status.state]).toEqual(["old", "failed"]);
    expect(operation.status.error?.code).toBe("rolled_back_machine_failed");
  });
});

describe("another kernel of a virtual machine", () => {
  function afterMaintenance(
    broken: Parameters<typeof createServiceWorld>[0],
    made: Parameters<typeof createServiceWorld>[1] = { image: "new", guestKernel: "guest-old" },
  ) {
    const world = createServiceWorld(broken, made);
    for (let i = 0; i < 8; i++) world.round(1_000);
    world.maintain();
    const steps = new Set<string>();
    for (let i = 0; i < 400 && world.service?.status.operationId !== null; i++) {
      world.round(5_000);
      steps.add(world.operation.status.step ?? "");
    }
    for (let i = 0; i < 4; i++) world.round(1_000);
    expect(world.service?.status).toMatchObject({ state: "Running", operationId: null });
    expect(world.data).toMatchObject({ writes: world.data.acknowledged, spoilt: false, snapshots: 0 });
    return { ...world, steps };
  }

  test("is what the machine boots from when the operation is over, under the same image", () => {
    const { placed, booted, operation, service, steps } = afterMaintenance({});
    expect([placed, booted, operation.status.state]).toEqual(["new", "guest-new", "completed"]);
    expect(service?.spec).toMatchObject({ image: "", guestKernel: "guest-new" });
    expect(service?.status.maintenance).toMatchObject({ refused: null, refusedGuestKernel: null });
    expect(steps).toContain("StopServer");
    expect(steps).not.toContain("ReplaceImage");
  });

  test.each(faultsOfKernels)("that does not %s is rolled back, and remembered", (kernel) => {
    const { placed, booted, operation, service, steps } = afterMaintenance({ kernel });
    expect([placed, booted, operation.status.state]).toEqual(["new", "guest-old", "failed"]);
    expect(operation.status.error?.message).toContain("runs from Linux 6.12.0 again");
    expect(steps).toContain("RollBackGuestKernel");
    expect(service?.status.maintenance).toMatchObject({ refused: null, refusedGuestKernel: { image: "guest-new" } });
  });

  test("comes with an image by one operation", () => {
    const { placed, booted, operation, service } = afterMaintenance({}, { image: "old", guestKernel: "guest-old" });
    expect([placed, booted, operation.metadata.id]).toEqual(["new", "guest-new", "op-1"]);
    expect(service?.spec.restartCount).toBe(0);
  });

  test.each([{ kernel: "connect" }, { image: "start the engine" }] as const)(
    "goes back with the image that it came with, whichever of them it was (%j)",
    (broken) => {
      const { placed, booted, operation, service } = afterMaintenance(broken, {
        image: "old",
        guestKernel: "guest-old",
      });
      expect([placed, booted]).toEqual(["old", "guest-old"]);
      expect(operation.status.error?.message).toContain("runs from 17.0 and Linux 6.12.0 again");
      expect(service?.status.maintenance).toMatchObject({
        refused: { image: "new" },
        refusedGuestKernel: { image: "guest-new" },
      });
    },
  );
});

describe("a start of the machine for a newer keeper", () => {
  function afterMaintenance(made: Parameters<typeof createServiceWorld>[1]) {
    const world = createServiceWorld({}, made);
    for (let i = 0; i < 8; i++) world.round(1_000);
    const { acknowledged } = world.data;
    world.maintain();
    const steps: (string | null)[] = [];
    for (let i = 0; i < 40 && world.service?.status.operationId !== null; i++) {
      world.round(1_000);
      if (steps.at(-1) !== world.operation.status.step) steps.push(world.operation.status.step);
    }
    expect(world.service?.status).toMatchObject({ state: "Running", operationId: null });
    expect(world.operation.status.state).toBe("completed");
    for (let i = 0; i < 4; i++) world.round(1_000);
    expect(world.data.acknowledged).toBeGreaterThan(acknowledged);
    return { ...world, steps };
  }

  test("ends with it, from the same image, and takes no snapshot", () => {
    const { placed, keeper, data, service, operation, steps } = afterMaintenance({ image: "new", keeper: 3 });
    expect([placed, keeper, data.snapshots]).toEqual(["new", 5, 0]);
    expect(service?.spec).toMatchObject({ image: "", machineStarts: 1, restartCount: 0 });
    expect(operation.spec.work).toMatchObject({ updates: ["keeper-5"], startsMachines: true, image: null });
    expect(steps).toContain("StopEngine");
    expect(steps).toContain("StopServer");
  });

  test("comes with another image by one start", () => {
    const { placed, keeper, service, operation } = afterMaintenance({ image: "old", keeper: 0 });
    expect([placed, keeper, operation.metadata.id]).toEqual(["new", 5, "op-1"]);
    expect(operation.spec.work).toMatchObject({ updates: ["new", "keeper-5"] });
    expect(service?.spec.machineStarts).toBeUndefined();
  });
});

test("no write that was acknowledged is lost, whoever is silent when, and whatever image or kernel is tried", () => {
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
        const world = createServiceWorld(
          { image, ...(isVirtual && kernel !== "good" && { kernel }) },
          { image: "old", ...(isVirtual && { guestKernel: "guest-old" }) },
        );
        for (let i = 0; i < 8; i++) world.round(1_000);
        for (const [elapsedMs, silent, waits, ask] of all) {
          if (ask === 0) world.maintain();
          if (ask === 1) world.command("start");
          world.silence(silent && ask < 6);
          world.change(isChanging && ask < 4);
          world.round(elapsedMs, waits);
          expect(world.data.writes).toBe(world.data.acknowledged);
        }
      },
    ),
    { numRuns: 500 },
  );
});
