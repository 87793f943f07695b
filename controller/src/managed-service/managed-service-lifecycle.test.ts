import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { MachineFacts } from "../compute/compute-provider.ts";
import { mayNote, planRemovals, planSnapshot } from "../machine/machine-snapshot.ts";
import type { MachineObject } from "../machine/machine.ts";
import { snapshotFor } from "../maintenance/trial-seal.ts";
import { beginMaintenance } from "../maintenance/begin-maintenance.ts";
import { noMaintenance } from "../maintenance/maintenance-memory.ts";
import type { NodeImageObject } from "../maintenance/node-image.ts";
import { type MaintenanceWorld, obstacleOf, pendingUpdates } from "../maintenance/pending-updates.ts";
import { isOver, newOperation, type OperationObject, stuckAfterMs } from "../operation/operation.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { heldReason } from "./managed-service-health.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import {
  type ObservedNode,
  type ObservedService,
  planManagedService,
  type ServiceStep,
} from "./managed-service-plan.ts";
import { advance } from "./service-advance.ts";
import { requestDeletion } from "./service-deletion.ts";
import { refuseWhileBusy, requestVerb, type Verb } from "./service-verbs.ts";

const node = { id: "node-1", role: "primary", hostname: "db-1.local", zone: "local" } as const;

function freshService(): { service: ManagedServiceObject; operation: OperationObject } {
  const metadata = { id: "service-1", name: "db", organizationId: "org", generation: 1, createdAt: 0, updatedAt: 0 };
  const operation = newOperation({
    id: "op-0",
    serviceId: "service-1",
    organizationId: "org",
    type: "create",
    instanceGeneration: 1,
    now: 0,
  });
  const service: ManagedServiceObject = {
    metadata,
    spec: {
      databaseType: "postgresql",
      version: "17",
      planName: "tier-1",
      storageSizeGb: 1,
      storageTier: "maxiops",
      zone: "local",
      allowedCidrs: [],
      parameters: {},
      ttlHours: null,
      expiresAt: null,
      deletionProtection: false,
      tags: {},
      hostname: "db.local",
      port: 5432,
      nodes: [node],
      power: "on",
      image: "",
      maintenanceWindow: null,
      restartCount: 0,
      instanceGeneration: 1,
    },
    status: {
      state: "Pending",
      operationId: "op-0",
      primaryNodeId: node.id,
      term: 1,
      nodes: [{ id: node.id, status: "Provisioning", address: "", publicAddress: "" }],
      health: { status: "unknown", since: 0, reason: "", checks: [] },
      error: null,
      observedGeneration: 0,
      expiryWarnings: [],
      announcedProtectedExpiry: false,
      maintenance: noMaintenance,
    },
  };
  return { service, operation };
}

interface Broken {
  readonly engine: boolean;
  readonly machine: boolean;
  readonly silent: boolean;
  /** What the newer image does not do; it does all where this is absent. */
  readonly image?: NonNullable<(typeof faultsOfImages)[number]>;
}

const faultsOfImages = [
  undefined,
  "start the machine",
  "start the engine",
  "bring its version",
  "order texts alike",
  "connect",
  "keep the data",
] as const;

const images: NodeImageObject[] = ["old", "new"].map((id, index) => ({
  metadata: { id, name: id, organizationId: "", generation: 1, createdAt: index, updatedAt: 0 },
  spec: { engines: [{ engine: "postgresql", version: "17", engineVersion: `17.${index}` }], urgent: null },
  status: { newestOf: index === 0 ? [] : ["postgresql 17"] },
}));

/** A small model of the machines, the agents and the zone, for the pure parts to act on. */
function createWorld(broken: Broken) {
  let { service, operation }: { service: ManagedServiceObject | undefined; operation: OperationObject } =
    freshService();
  let machine: MachineObject | undefined;
  let instance: ObservedNode["instance"];
  let names: ObservedService["names"] = "absent";
  let now = 1;
  let operations = 0;
  /** Its host is drained. */
  let isHeld = false;
  /** What its agent was told last, and goes by when its machine starts. */
  let engineWanted = false;
  let letsIn = false;
  /** Writes of clients: as they were told, and as they are in the data, which the engine of an image may damage. */
  let acknowledged = 0;
  let data = { writes: 0, spoilt: false };
  const snapshots = new Map<string, typeof data>();
  let isSilent = broken.silent;
  /** Users or databases are being changed. */
  let isChanging = false;

  /** Image that the machine runs from, as its provider has it. */
  let placed = "old";
  const fails = (what: Broken["image"]) => placed === "new" && broken.image === what;
  const observed = (): ObservedService => {
    const connected = machine?.status.state === "running" && !isSilent && !fails("connect");
    const nodes = [{ node, machine, connected, instance, isHeld, isCurrent: true, silentHost: undefined }];
    return { nodes, names, isChanging };
  };
  /** The engine comes up, and is what came of that. */
  function launch(): "running" | "failed" {
    if (fails("keep the data")) data = { ...data, spoilt: true };
    return broken.engine || data.spoilt || fails("start the engine") ? "failed" : "running";
  }
  function clientsWrite(): void {
    if (machine?.status.state !== "running" || instance?.state !== "running" || !letsIn) return;
    acknowledged += 1;
    data = { ...data, writes: data.writes + 1 };
  }
  /** As the machine's reconciler does before a start. */
  function secureData(of: MachineObject): MachineObject {
    const names = () => [...snapshots.keys()];
    const facts = () => ({ snapshots: names(), starts: 0, state: of.status.state }) as unknown as MachineFacts;
    for (const { name } of planRemovals(of, facts())) snapshots.delete(name);
    if (of.status.state !== "stopped") return of;
    let after = of;
    for (const { kind, name } of planSnapshot(of, facts())) {
      if (kind === "takeSnapshot") snapshots.set(name, data);
      if (kind === "restoreSnapshot") data = snapshots.get(name) ?? data;
      const outcome = kind === "takeSnapshot" ? "taken" : "restored";
      const noted = { name, outcome, reason: "" } as const;
      expect(mayNote(after, noted)).toBe(true);
      after = { ...after, status: { ...after.status, snapshot: noted } };
    }
    return after;
  }

  function perform(step: ServiceStep): void {
    const current = service;
    if (current === undefined) return;
    if (step.kind === "createMachine") {
      machine = {
        metadata: { ...current.metadata, id: node.id },
        spec: { power: current.spec.power, image: "old" } as MachineObject["spec"],
        status: {
          state: "pending",
          reason: "",
          address: "127.0.0.2",
          publicAddress: "127.0.0.2",
          enrollment: null,
          certificate: null,
        },
      };
    } else if (step.kind === "powerMachine" && machine)
      machine = { ...machine, spec: { ...machine.spec, power: step.power } };
    else if (step.kind === "placeImage" && machine) {
      expect(machine.status.state).toBe("stopped");
      const snapshot = snapshotFor(current, machine);
      machine = { ...machine, spec: { ...machine.spec, power: "on", image: current.spec.image, snapshot } };
    } else if (step.kind === "dropSnapshot" && machine) {
      machine = { ...machine, spec: { ...machine.spec, snapshot: null } };
    } else if (step.kind === "deleteMachine") [machine, instance] = [undefined, undefined];
    else if (step.kind === "publishNames") names = "published";
    else if (step.kind === "verifyNames") names = "verified";
    else if (step.kind === "withdrawNames") names = "absent";
    else if (step.kind === "forget") service = undefined;
    else if (step.kind === "converge") {
      engineWanted = step.running;
      letsIn = current.spec.trial === undefined;
      const state = step.running ? launch() : "stopped";
      instance = create(InstanceObservationSchema, {
        state,
        reason: state === "failed" ? "the engine refused" : "",
        engineVersion: placed === "new" && !fails("bring its version") ? "17.1" : "17.0",
        checks: [
          { name: "liveness", status: "healthy", reason: "" },
          { name: "collation", status: fails("order texts alike") ? "degraded" : "healthy", reason: "" },
        ],
        since: timestampFromMs(now),
        generation: BigInt(step.generation),
        keptGeneration: BigInt(step.generation),
        restartCount: BigInt(current.spec.restartCount),
      });
    }
  }

  function machineMoves(): void {
    if (machine === undefined) return;
    machine = secureData(machine);
    const { power } = machine.spec;
    // As machines do it: another image comes under one that is stopped, and acts at its start.
    if (machine.status.state === "stopped") placed = machine.spec.image;
    const isBroken = broken.machine || (power === "on" && fails("start the machine"));
    const state = isBroken ? "failed" : power === "on" ? "running" : "stopped";
    const starts = machine.status.state === "stopped" && state === "running";
    if (starts && instance && engineWanted) {
      const launched = launch();
      instance = { ...instance, state: launched, reason: launched === "failed" ? "the engine refused" : "" };
    }
    // A machine that was stopped tells of no engine that runs.
    if (state === "stopped" && instance) instance = { ...instance, state: "stopped" };
    machine = { ...machine, status: { ...machine.status, state, reason: isBroken ? "the disk is full" : "" } };
  }

  return {
    get service() {
      return service;
    },
    get operation() {
      return operation;
    },
    command(verb: Asked): void {
      if (verb === "maintain") return this.maintain();
      if (service === undefined) return;
      try {
        const outcome = requestVerb(
          service,
          verb,
          isOver(operation) ? undefined : operation,
          `op-${++operations}`,
          now,
        );
        if (outcome.kind === "change") [service, operation] = [outcome.after, outcome.operation];
      } catch (error) {
        expect((error as { key?: string }).key).toMatch(/WRONG_STATE|OPERATION_IN_PROGRESS/);
      }
    },
    /** As the API does it; what it refuses changes nothing. */
    maintain(acceptsTextOrder = false): void {
      if (service === undefined || service.metadata.deletionRequestedAt !== undefined) return;
      const world: MaintenanceWorld = { images, image: machine?.spec.image ?? "", instance, noSnapshots: "", now };
      const updates = pendingUpdates(service, world);
      if (updates.length === 0 || obstacleOf(service, world) !== undefined) return;
      try {
        refuseWhileBusy(service, isOver(operation) ? undefined : operation);
      } catch {
        return;
      }
      const asked = { operationId: `op-${++operations}`, automatic: false, now, acceptsTextOrder };
      ({ after: service, operation } = beginMaintenance(service, updates, world, asked));
    },
    get data() {
      return { ...data, acknowledged, snapshots: snapshots.size };
    },
    silence(silent: boolean): void {
      isSilent = silent;
    },
    change(changing: boolean): void {
      isChanging = changing;
    },
    hold(held: boolean): void {
      isHeld = held;
    },
    get placed() {
      return placed;
    },
    /** A look at the service; `machineWaits`: its machine has not moved since the one before. */
    round(elapsedMs: number, machineWaits = false): void {
      now += elapsedMs;
      if (!machineWaits) machineMoves();
      clientsWrite();
      if (service === undefined) return;
      for (const step of planManagedService(service, observed())) perform(step);
      if (!machineWaits) machineMoves();
      if (service === undefined) return;
      const before = service.status.operationId === null ? undefined : operation;
      const moved = advance(service, observed(), before, now, silentLog);
      service = moved.after;
      if (moved.operation !== undefined) {
        expect(moved.operation.status.progressPct).toBeGreaterThanOrEqual(before?.status.progressPct ?? 0);
        operation = moved.operation;
      }
    },
  };
}

type Asked = Verb | "maintain";
const verbs = fc.constantFrom<Asked>("start", "stop", "restart", "delete", "maintain");
const imageFaults = fc.constantFrom(...faultsOfImages);

test("whatever is asked when, every operation ends, in the state that was asked for or in Error with a reason", () => {
  const worlds = fc
    .tuple(fc.record({ engine: fc.boolean(), machine: fc.boolean(), silent: fc.boolean() }), imageFaults)
    .map(([broken, image]) => ({ ...broken, ...(image && { image: image as NonNullable<Broken["image"]> }) }));
  const commands = fc.array(fc.tuple(fc.nat(3), fc.nat(2_000), verbs), { maxLength: 12 });
  fc.assert(
    fc.property(worlds, commands, (broken, asked) => {
      const world = createWorld(broken);
      for (const [rounds, elapsedMs, verb] of asked) {
        for (let i = 0; i < rounds; i++) world.round(elapsedMs);
        world.command(verb);
      }
      for (let i = 0; i < 24; i++) world.round(stuckAfterMs);
      const { service, operation } = world;
      if (service === undefined) return;
      expect(service.status.operationId).toBeNull();
      expect(isOver(operation)).toBe(true);
      const { state, error } = service.status;
      expect(["Running", "Stopped", "Error"]).toContain(state);
      if (state === "Error") expect(error?.message).not.toBe("");
      if (!broken.engine && !broken.machine && !broken.silent)
        expect(state).toBe(service.spec.power === "on" ? "Running" : "Stopped");
    }),
    { numRuns: 500 },
  );
});

describe("another image", () => {
  function afterMaintenance(image: Broken["image"], { machineIsSlow = false, acceptsTextOrder = false } = {}) {
    const world = createWorld({ engine: false, machine: false, silent: false, ...(image && { image }) });
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

  test.each(faultsOfImages.filter((fault) => fault !== undefined))(
    "that does not %s is taken back, and remembered",
    (fault) => {
      const { placed, operation, service } = afterMaintenance(fault);
      expect([placed, operation.status.state, service?.spec.image]).toEqual(["old", "failed", "old"]);
      expect(operation.status.error?.message).toContain("runs from 17.0 again");
      expect(service?.status.maintenance.refused).toMatchObject({ image: "new" });
    },
  );

  test("that damages the data is taken back with the data as they were, and nothing that clients wrote is lost", () => {
    const { data, operation } = afterMaintenance("keep the data");
    expect(data).toMatchObject({ spoilt: false, writes: data.acknowledged });
    expect(data.writes).toBeGreaterThan(0);
    expect(operation.status.snapshot).toEqual({ outcome: "restored", reason: "" });
    expect(operation.status.error?.message).toContain("as they were before");
  });

  test("lets clients in again at the end, and leaves no snapshot", () => {
    for (const fault of faultsOfImages) {
      const world = afterMaintenance(fault);
      const { acknowledged } = world.data;
      for (let i = 0; i < 4; i++) world.round(1_000);
      expect(world.data.acknowledged).toBeGreaterThan(acknowledged);
      expect(world.data).toMatchObject({ writes: world.data.acknowledged, snapshots: 0 });
    }
  });

  test("that keeps a machine from starting is taken back, however long the machine tells of that", () => {
    const { placed, operation } = afterMaintenance("start the machine", { machineIsSlow: true });
    expect([placed, operation.status.state]).toEqual(["old", "failed"]);
    expect(operation.status.error?.code).toBe("taken_back_machine_failed");
  });
});

test("no write that was acknowledged is lost, whoever is silent when, and whatever image is tried", () => {
  const rounds = fc.array(fc.tuple(fc.constantFrom(200, 5_000, 120_000), fc.boolean(), fc.boolean(), fc.nat(9)), {
    minLength: 20,
    maxLength: 120,
  });
  fc.assert(
    fc.property(imageFaults, fc.boolean(), rounds, (image, isChanging, all) => {
      const world = createWorld({ engine: false, machine: false, silent: false, ...(image && { image }) });
      for (let i = 0; i < 8; i++) world.round(1_000);
      for (const [elapsedMs, silent, waits, ask] of all) {
        if (ask === 0) world.maintain();
        if (ask === 1) world.command("start");
        world.silence(silent && ask < 6);
        world.change(isChanging && ask < 4);
        world.round(elapsedMs, waits);
        expect(world.data.writes).toBe(world.data.acknowledged);
      }
    }),
    { numRuns: 500 },
  );
});

test("a deletion ends with nothing, from every state", () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.nat(3), verbs), { maxLength: 6 }), fc.boolean(), (asked, engine) => {
      const world = createWorld({ engine, machine: false, silent: false });
      for (const [rounds, verb] of asked) {
        for (let i = 0; i < rounds; i++) world.round(1_000);
        world.command(verb);
      }
      world.command("delete");
      for (let i = 0; i < 6; i++) world.round(1_000);
      expect(world.service).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("every state of the table but the first can be left and reached", () => {
  const { rows } = managedServiceLifecycle;
  const from = new Set(rows.map((row) => row[0]));
  const to = new Set(rows.map((row) => row[2]));
  expect(from).toEqual(new Set(["Pending", "Provisioning", "Running", "Upgrading", "Stopped", "Error"]));
  expect(to).toEqual(new Set(["Provisioning", "Running", "Upgrading", "Stopped", "Error"]));
});

test("is stopped while its host is drained and says why, stays so when told to, and else runs again by itself", () => {
  const world = createWorld({ engine: false, machine: false, silent: false });
  const rounds = () => {
    for (let round = 0; round < 10; round += 1) world.round(1_000);
  };
  rounds();
  expect(world.service?.status.state).toBe("Running");
  world.hold(true);
  rounds();
  expect(world.service?.status).toMatchObject({
    state: "Stopped",
    nodes: [{ status: "Stopped" }],
    health: { status: "unknown", reason: heldReason },
  });
  expect(() => requestVerb(world.service as ManagedServiceObject, "start", undefined, "op", 1)).toThrow(heldReason);
  world.hold(false);
  rounds();
  expect(world.service?.status).toMatchObject({ state: "Running", health: { status: "healthy" } });
  world.hold(true);
  rounds();
  world.command("stop");
  rounds();
  world.hold(false);
  rounds();
  expect(world.service?.status.state).toBe("Stopped");
  expect(world.operation.status.state).toBe("completed");
});

test("a deletion waits for a host that does not answer, whatever that takes, and is stuck only when it answers", () => {
  const asked = requestDeletion(freshService().service, "op-1", 0);
  const machine = {
    spec: { power: "on", image: "" },
    status: { state: "destroying", reason: "Host east-1 does not answer", address: "127.0.0.2" },
    metadata: { id: node.id, deletionRequestedAt: 1 },
  } as MachineObject;
  const seen = (silentHost: string | undefined): ObservedService => ({
    nodes: [{ node, machine, connected: false, instance: undefined, isHeld: false, isCurrent: false, silentHost }],
    names: "absent",
    isChanging: false,
  });
  let { after: service, operation } = asked;
  const look = (silentHost: string | undefined, now: number) => {
    const moved = advance(service, seen(silentHost), operation, now, silentLog);
    service = moved.after;
    operation = moved.operation ?? operation;
    return operation.status;
  };
  expect(look(undefined, 1)).toMatchObject({ step: "RemoveServer", deadline: 1 + stuckAfterMs });
  expect(look("east-1", 2)).toMatchObject({ step: "WaitForHost east-1", deadline: null });
  expect(look("east-1", 100 * stuckAfterMs)).toMatchObject({ state: "running", error: null });
  expect(service.status.health.reason).toBe("The deletion waits: Host east-1 does not answer");
  const back = 101 * stuckAfterMs;
  expect(look(undefined, back)).toMatchObject({ step: "RemoveServer", deadline: back + stuckAfterMs });
  expect(look(undefined, back + stuckAfterMs + 1)).toMatchObject({ state: "failed", error: { code: "stuck" } });
});
