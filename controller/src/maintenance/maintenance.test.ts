import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { Call } from "@holdfast/common/call.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { Maintenance, MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { type Operation, OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../test/support/etcd.ts";
import { createMaintenanceApi as createAdminApi } from "../admin/maintenance-api.ts";
import { type Hold, holdPrefix } from "../clock/holds.ts";
import type { SessionFacts } from "../fleet/session/session-facts.ts";
import { type Collections, createCollections } from "../collections.ts";
import type { MachineObject } from "../machine/machine.ts";
import type { ManagedServiceObject } from "../managed-service/managed-service.ts";
import { createServiceAccess } from "../managed-service/service-access.ts";
import { requestVerb } from "../managed-service/service-verbs.ts";
import { completed } from "../operation/operation.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import { createSealer } from "../secrets/sealer.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import type { Store } from "../store/store.ts";
import { Conflict, createUnitOfWork } from "../store/unit-of-work.ts";
import { registerChanges } from "./image-register.ts";
import { brakeRecordId } from "./brake-record.ts";
import { createMaintenanceApi } from "./maintenance-api.ts";
import { createMaintenanceBrake } from "./maintenance-brake.ts";
import { noMaintenance } from "./maintenance-memory.ts";
import { settleMaintenance } from "./settle-maintenance.ts";

// Nobody reconciles here: an operation goes on until a test ends it.
const hourMs = 3_600_000;
const monday = Date.parse("2026-11-16T12:00:00Z");
let now = monday;
const clock = { now: () => now, monotonicMs: () => now };
let etcd: TestEtcd;
let store: Store;
let collections: Collections;
let holds: Hold[] = [];
let pendingRestart: string[] = [];
let textLibraries: string[] = [];
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });
const call = {
  principal: { kind: "user", name: "anna", organizationId: "o" },
  source: "127.0.0.1",
  requestId: "r",
  signal: new AbortController().signal,
  setHeader() {},
} as unknown as Call;

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  collections = createCollections(store);
  await collections.ready;
});
afterAll(async () => {
  collections?.close();
  await store?.close();
  await etcd?.stop();
});
beforeEach(async () => {
  now = monday;
  holds = [];
  pendingRestart = [];
  textLibraries = [];
  const unit = begin();
  const facts = [{ engine: "postgresql", version: "17", available: true, image: "trixie-2", engineVersion: "17.11" }];
  for (const image of registerChanges(facts, [], new Set(), monday - hourMs).added) unit.create("node-image", image);
  await collections.reached(await unit.commit(), 30_000);
});
afterEach(async () => {
  const unit = begin();
  for (const stored of collections.services.values()) unit.remove("managed-service", stored);
  for (const stored of collections.operations.values()) unit.remove("operation", stored);
  for (const stored of collections.machines.values()) unit.remove("machine", stored);
  for (const stored of collections.nodeImages.values()) unit.remove("node-image", stored);
  const record = await collections.brakeRecords.fresh(brakeRecordId);
  if (record !== undefined) unit.remove("maintenance-brake", record);
  await collections.reached(await unit.commit(), 30_000);
});

const fleet = {
  session: () => ({ bootId: "b" }) as SessionFacts,
  observation: () => ({
    instance: create(InstanceObservationSchema, {
      state: "running",
      engineVersion: "17.10",
      pendingRestart,
      textLibraries,
    }),
    observedAt: 0,
    bootId: "b",
  }),
};

const unheld = () => ({ key: `${holdPrefix}maintenance`, modRevision: 0n });

/** What a controller has, with a memory of its own where that is given. */
function deps(memory = collections) {
  const { services, operations, machines, hosts, nodeImages, brakeRecords } = memory;
  const access = createServiceAccess({ services, operations });
  const hold = {
    list: () => holds,
    set: async (one: Hold) => void holds.push(one),
    unheld,
  };
  const brake = createMaintenanceBrake({ begin, services, operations, brakeRecords, holds: hold, now: clock.now });
  return {
    begin,
    services,
    operations,
    machines,
    hosts,
    nodeImages,
    access,
    fleet,
    brake,
    clock,
    newId: uuidv7,
    log: silentLog,
  };
}

function api() {
  const { handlers } = createMaintenanceApi({ ...deps(), maintenanceHeld: () => holds.length > 0 });
  return handlers as unknown as {
    [K in keyof typeof MaintenanceService.method]: (
      input: object,
      call: Call,
    ) => Promise<K extends "getMaintenance" ? Maintenance : Operation>;
  };
}

const apply = (serviceId: string, ...updateIds: string[]) => api().applyMaintenance({ serviceId, updateIds }, call);

/** Services that run from an older image, in a window that opens on Sunday at three. */
async function running(count = 1, change: Partial<ManagedServiceObject["status"]> = {}): Promise<string[]> {
  const unit = begin();
  const ids = Array.from({ length: count }, () => {
    const id = uuidv7();
    const metadata = { id, name: id, organizationId: "o", generation: 1, createdAt: 0, updatedAt: 0 };
    const spec = { databaseType: "postgresql", version: "17", nodes: [{ id }], power: "on", image: "" };
    const counts = { instanceGeneration: 3, restartCount: 0, maintenanceWindow: { day: 6, hour: 3 } };
    const health = { status: "healthy", since: 0, reason: "", checks: [] };
    const status = {
      state: "Running",
      error: null,
      operationId: null,
      primaryNodeId: id,
      nodes: [],
      health,
      maintenance: noMaintenance,
    };
    unit.create("managed-service", {
      metadata,
      spec: { ...spec, ...counts },
      status: { ...status, ...change },
    } as unknown as ManagedServiceObject);
    unit.create("machine", { metadata, spec: { image: "trixie-1" }, status: {} } as unknown as MachineObject);
    return id;
  });
  await collections.reached(await unit.commit(), 30_000);
  return ids;
}

function objectOf(id: string) {
  const stored = collections.services.get(id);
  if (stored === undefined) throw new Error(`no service ${id}`);
  return stored;
}

/** As reconcilers look, until nothing more is written; who was not the first looks again. */
async function look(id: string, controller = deps()): Promise<number | null> {
  for (;;) {
    const looked = await retryConflict(call.signal, () => settleMaintenance(objectOf(id), controller, call.signal));
    if (looked.written === undefined) return looked.lookAgainMs;
  }
}

async function end(id: string): Promise<void> {
  const { object } = objectOf(id);
  const operation = collections.operations.get(object.status.operationId ?? "");
  if (operation === undefined) throw new Error(`service ${id} has no operation`);
  const unit = begin();
  unit.update("operation", operation, completed(operation.object, now));
  unit.update("managed-service", objectOf(id), { ...object, status: { ...object.status, operationId: null } });
  await collections.reached(await unit.commit(), 30_000);
}

/** Events in the outbox about a service, in order. */
async function eventsOf(id: string): Promise<{ type: string; data: object }[]> {
  const { values } = await store.list("/holdfast/v1/outbox/", { limit: 500 });
  return values
    .map(({ value }) => JSON.parse(value) as { entry: string; type: string; objectId: string; data: object })
    .filter(({ entry, objectId }) => entry === "event" && objectId === id);
}

describe("applied by request", () => {
  test("an image is one operation that is answered again while it is under way, also to two at once", async () => {
    const [id = ""] = await running();
    const [one, other] = await Promise.all([apply(id), apply(id)]);
    expect(one).toMatchObject({ type: "maintenance", status: OperationStatus.PENDING, serviceId: id });
    expect(other.id).toBe(one.id);
    expect((await apply(id, "trixie-2")).id).toBe(one.id);
    expect(objectOf(id).object.spec).toMatchObject({ image: "trixie-2", instanceGeneration: 5, restartCount: 0 });
    expect((await eventsOf(id)).map(({ type }) => type)).toEqual(["service.maintenance_started"]);
    const shown = await api().getMaintenance({ serviceId: id }, call);
    expect(shown).toMatchObject({ operation: { id: one.id }, updates: [], windowIsDefault: false });
  });

  test("parameters that wait are a restart", async () => {
    const [id = ""] = await running();
    pendingRestart = ["max_connections"];
    await apply(id, "restart");
    expect(objectOf(id).object.spec).toMatchObject({ image: "", instanceGeneration: 4, restartCount: 1 });
  });

  test("an image that changes the order of texts needs its word, and leaves the rest alone", async () => {
    const [id = ""] = await running();
    textLibraries = ["ICU"];
    const unit = begin();
    for (const [image, ICU] of [
      ["trixie-1", "72.1"],
      ["trixie-2", "76.1"],
    ] as const) {
      const stored = collections.nodeImages.get(image);
      const facts = { engine: "postgresql", version: "17", available: true, image, textLibraries: { ICU } };
      const [made] = registerChanges([facts], [], new Set(), monday - hourMs).added;
      if (made === undefined) throw new Error("no image");
      if (stored === undefined) unit.create("node-image", { ...made, status: { newestOf: [] } });
      else unit.update("node-image", stored, made);
    }
    await collections.reached(await unit.commit(), 30_000);
    const refused = { key: "WRONG_STATE", message: expect.stringContaining("ICU 72.1 to 76.1") };
    await expect(apply(id)).rejects.toMatchObject(refused);
    await expect(apply(id, "trixie-2")).rejects.toMatchObject(refused);
    pendingRestart = ["max_connections"];
    await apply(id);
    expect(objectOf(id).object.spec).toMatchObject({ image: "", restartCount: 1 });
    await end(id);
    const accepted = { serviceId: id, updateIds: ["trixie-2"], acceptTextOrderChange: true };
    const { id: operationId } = await api().applyMaintenance(accepted, call);
    expect(objectOf(id).object.spec.image).toBe("trixie-2");
    expect(collections.operations.get(operationId)?.object.spec.maintenance).toMatchObject({ acceptsTextOrder: true });
  });

  test("nothing is refused when nothing is pending, and an update that is not pending by its place", async () => {
    const [id = ""] = await running();
    await expect(apply(id, "trixie-2", "trixie-9")).rejects.toMatchObject({
      key: "INVALID_REQUEST",
      errors: [{ field: "update_ids[1]", code: "not_pending" }],
    });
    await apply(id);
    await end(id);
    await expect(apply(id)).rejects.toMatchObject({ key: "NOTHING_PENDING" });
  });

  test.each([
    ["is stopped", { state: "Stopped" as const }, "Start it first"],
    ["is in Error", { state: "Error" as const }, "must be Running"],
    ["is not healthy", { health: { status: "degraded" as const, since: 0, reason: "Full.", checks: [] } }, "Full."],
  ])("it is refused for a service that %s", async (_name, status, words) => {
    const [id = ""] = await running(1, status);
    await expect(apply(id)).rejects.toMatchObject({ key: "WRONG_STATE", message: expect.stringContaining(words) });
  });

  test("another operation is refused meanwhile, and deletion ends it", async () => {
    const [id = ""] = await running();
    const { id: operationId } = await apply(id);
    const operation = collections.operations.get(operationId)?.object;
    expect(() => requestVerb(objectOf(id).object, "restart", operation, uuidv7(), now)).toThrow(/in progress/);
    const deletion = requestVerb(objectOf(id).object, "delete", operation, uuidv7(), now);
    expect(deletion).toMatchObject({ kind: "change", ended: { status: { state: "cancelled" } } });
  });
});

describe("applied by themselves", () => {
  test("updates are announced a day ahead, begun at their time, and never twice", async () => {
    const [id = ""] = await running();
    const waitMs = (await look(id)) ?? 0;
    expect(await eventsOf(id)).toEqual([]);
    now += waitMs;
    expect(await look(id)).toBe(24 * hourMs);
    now += 24 * hourMs - 1;
    expect(await look(id)).toBe(1);
    now += 1;
    await look(id);
    const [scheduled, started, ...more] = await eventsOf(id);
    expect(scheduled?.type).toBe("service.maintenance_scheduled");
    expect(scheduled?.data).toMatchObject({
      update_id: "trixie-2",
      apply_at: new Date(now).toISOString(),
      urgent: false,
    });
    expect(started?.data).toMatchObject({ automatic: true, update_ids: ["trixie-2"] });
    expect(more).toEqual([]);
  });

  test("one service of a small fleet at a time", async () => {
    const ids = await running(3);
    now = Date.parse("2026-11-22T04:20:00Z");
    const busy = () => ids.filter((id) => objectOf(id).object.status.operationId !== null);
    const controller = deps();
    await Promise.all(ids.map((id) => look(id, controller)));
    expect(busy()).toHaveLength(1);
    await end(busy()[0] ?? "");
    for (const id of ids) await look(id, controller);
    expect(busy()).toHaveLength(1);
  });

  test("no more at once than the fleet's share, though two controllers begin them", async () => {
    const ids = await running(40);
    now = Date.parse("2026-11-22T04:20:00Z");
    const second = createCollections(store);
    await second.ready;
    const busy = () => ids.filter((id) => objectOf(id).object.status.operationId !== null);
    try {
      const controllers = [deps(), deps(second)];
      for (const round of [1, 2, 3]) {
        // Each owns half of them.
        await Promise.all(ids.map((id, at) => look(id, controllers[at % 2])));
        expect({ round, busy: busy().length }).toEqual({ round, busy: 2 });
        for (const id of busy()) await end(id);
      }
    } finally {
      second.close();
    }
  });

  test("none while something is held back; requests go on", async () => {
    const [id = ""] = await running();
    holds = [{ kind: "clock", reason: "The wall clock jumped.", since: 0, until: null }];
    now = Date.parse("2026-11-22T04:20:00Z");
    expect(await look(id)).toBe(15_000);
    expect((await api().getMaintenance({ serviceId: id }, call)).held).toBeDefined();
    expect((await apply(id)).type).toBe("maintenance");
  });

  test("an image that failed on two services holds back the rest", async () => {
    const { brake } = deps();
    await brake.failed("trixie-2", "one", "It did not start.", call.signal);
    await brake.failed("trixie-2", "one", "It did not start.", call.signal);
    await brake.failed("trixie-1", "another", "It did not start.", call.signal);
    expect(holds).toEqual([]);
    await brake.failed("trixie-2", "another", "It did not start.", call.signal);
    expect(holds).toMatchObject([{ kind: "maintenance", only: "maintenance", until: null }]);
    expect(holds[0]?.reason).toContain("trixie-2 failed on 2 services");
    // Another controller, which has not heard of the hold yet, begins nothing.
    const { key } = unheld();
    await store.commit({ conditions: [], puts: [{ key, value: JSON.stringify(holds[0]) }], deletes: [] });
    const unit = begin();
    expect(await brake.claim(unit, uuidv7(), call.signal)).toBe(true);
    await expect(unit.commit()).rejects.toThrow(Conflict);
    await store.commit({ conditions: [], puts: [], deletes: [key] });
  });

  test("an urgent image is applied at its notice's end, outside of the window", async () => {
    const [id = ""] = await running();
    const admin = createAdminApi({ ...deps(), cursors: undefined as never }).handlers as unknown as Record<
      "markImageUrgent" | "unmarkImageUrgent",
      (input: object, call: Call) => Promise<unknown>
    >;
    const urgent = { image: "trixie-2", noticeHours: 2, reason: "CVE-2026-1234" };
    expect(await admin.markImageUrgent(urgent, call)).toMatchObject({ urgent: true, services: 0, noticeHours: 2 });
    expect(await look(id)).toBe(2 * hourMs);
    now += 2 * hourMs;
    await look(id);
    const events = await eventsOf(id);
    expect(events.map(({ type }) => type)).toEqual(["service.maintenance_scheduled", "service.maintenance_started"]);
    expect(events[0]?.data).toMatchObject({ urgent: true, apply_at: new Date(now).toISOString() });
    expect(await admin.unmarkImageUrgent({ image: "trixie-2" }, call)).toMatchObject({ urgent: false });
    await expect(admin.markImageUrgent({ ...urgent, image: "trixie-9" }, call)).rejects.toMatchObject({
      key: "OBJECT_NOT_FOUND",
    });
  });
});
