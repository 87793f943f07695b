import { createMaintenanceBrake } from "./maintenance-brake.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import { call, hourMs, maintenanceGround } from "../../../../test/support/machines/maintenance-ground.ts";
import { methodsOf } from "../../../../test/support/api/test-call.ts";
import { createMaintenanceAdminApi as createAdminApi } from "./maintenance-admin-api.ts";
import { createCollections } from "../../../../test/support/controller/test-collections.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";

const ground = await maintenanceGround();

test("updates are announced a day ahead, begun at their time, and never twice", async () => {
  const [id = ""] = await ground.running();
  const waitMs = (await ground.look(id)) ?? 0;
  expect(await ground.eventsOf(id)).toEqual([]);
  ground.world.now += waitMs;
  expect(await ground.look(id)).toBe(24 * hourMs);
  ground.world.now += 24 * hourMs - 1;
  expect(await ground.look(id)).toBe(1);
  ground.world.now += 1;
  await ground.look(id);
  const [scheduled, started, ...more] = await ground.eventsOf(id);
  expect(scheduled?.type).toBe("service.maintenance_scheduled");
  expect(scheduled?.data).toMatchObject({
    update_id: "trixie-2",
    apply_at: new Date(ground.world.now).toISOString(),
    urgent: false,
  });
  expect(started?.data).toMatchObject({ automatic: true, update_ids: ["trixie-2"] });
  expect(more).toEqual([]);
});

test("one service of a small fleet at a time", async () => {
  const ids = await ground.running(3);
  ground.world.now = Date.parse("2026-11-22T04:20:00Z");
  const busy = () => ids.filter((id) => ground.objectOf(id).object.status.operationId !== null);
  const controller = ground.controller();
  await Promise.all(ids.map((id) => ground.look(id, controller)));
  expect(busy()).toHaveLength(1);
  await ground.end(busy()[0] ?? "");
  for (const id of ids) await ground.look(id, controller);
  expect(busy()).toHaveLength(1);
});

test("no more at once than the fleet's share, though two controllers begin them", async () => {
  const ids = await ground.running(40);
  ground.world.now = Date.parse("2026-11-22T04:20:00Z");
  const second = createCollections(ground.store);
  await second.ready;
  const busy = () => ids.filter((id) => ground.objectOf(id).object.status.operationId !== null);
  try {
    const controllers = [ground.controller(), ground.controller(second)];
    for (const round of [1, 2, 3]) {
      // Each owns half of them.
      await Promise.all(ids.map((id, at) => ground.look(id, controllers[at % 2])));
      expect({ round, busy: busy().length }).toEqual({ round, busy: 2 });
      for (const id of busy()) await ground.end(id);
    }
  } finally {
    second.close();
  }
});

test("none while something is held back; requests go on", async () => {
  const [id = ""] = await ground.running();
  ground.world.holds = [{ kind: "clock", reason: "The wall clock jumped.", since: 0, until: null }];
  ground.world.now = Date.parse("2026-11-22T04:20:00Z");
  expect(await ground.look(id)).toBe(15_000);
  expect((await ground.api().getMaintenance({ serviceId: id }, call)).held).toBeDefined();
  expect((await ground.apply(id)).type).toBe("maintenance");
});

test("an image that failed on two services holds back the rest", async () => {
  const { brake } = ground.controller();
  await brake.failed("trixie-2", "one", "It did not start.", call.signal);
  await brake.failed("trixie-2", "one", "It did not start.", call.signal);
  await brake.failed("trixie-1", "another", "It did not start.", call.signal);
  expect(ground.world.holds).toEqual([]);
  await brake.failed("trixie-2", "another", "It did not start.", call.signal);
  expect(ground.world.holds).toMatchObject([{ kind: "maintenance", only: "maintenance", until: null }]);
  expect(ground.world.holds[0]?.reason).toContain("trixie-2 failed on 2 services");
  // Another controller, which has not heard of the hold yet, begins nothing.
  const { key } = ground.unheld();
  await ground.store.commit({
    conditions: [],
    puts: [{ key, value: JSON.stringify(ground.world.holds[0]) }],
    deletes: [],
  });
  const unit = ground.begin();
  expect(await brake.claim(unit, uuidv7(), call.signal)).toBe(true);
  await expect(unit.commit()).rejects.toThrow(Conflict);
  await ground.store.commit({ conditions: [], puts: [], deletes: [key] });
});

test("an image that failed on two services of one owner is kept from that owner's others, and from nobody else", async () => {
  const { operations } = ground.controller();
  const { brakeRecords, ...others } = createCollections(ground.store);
  await others.ready;
  const owners = new Map([
    ["a-1", "a"],
    ["a-2", "a"],
    ["b-1", "b"],
  ]);
  const entry = (id: string) => ({ object: { metadata: { organizationId: owners.get(id) ?? "" } } }) as never;
  const services = { size: 3, get: entry, values: () => [...owners.keys()].map(entry).values() };
  const held: string[] = [];
  const holds = {
    list: () => [],
    set: async ({ reason }: { readonly reason: string }) => void held.push(reason),
    unheld: () => ({ key: "/none", modRevision: 0n }),
  };
  const brake = createMaintenanceBrake({
    begin: ground.begin,
    services,
    operations,
    brakeRecords,
    holds,
    now: Date.now,
  });
  for (const id of ["a-1", "a-2"]) await brake.failed("trixie-9", id, "Its settings were bad.", call.signal);
  await expect.poll(() => brake.spares("a", "trixie-9")).toBe(true);
  expect(brake.spares("b", "trixie-9")).toBe(false);
  expect(brake.spares("a", "trixie-8")).toBe(false);
  expect(held).toEqual([]);
  await brake.failed("trixie-9", "b-1", "It did not start.", call.signal);
  expect(held).toHaveLength(1);
  others.close();
});

test("an urgent image is applied at its notice's end, outside of the window", async () => {
  const [id = ""] = await ground.running();
  const admin = methodsOf(MaintenanceService, createAdminApi(ground.controller()));
  const urgent = { image: "trixie-2", noticeHours: 2, reason: "CVE-2026-1234" };
  expect(await admin.markImageUrgent(urgent, call)).toMatchObject({ urgent: true, services: 0, noticeHours: 2 });
  expect(await ground.look(id)).toBe(2 * hourMs);
  ground.world.now += 2 * hourMs;
  await ground.look(id);
  const events = await ground.eventsOf(id);
  expect(events.map(({ type }) => type)).toEqual(["service.maintenance_scheduled", "service.maintenance_started"]);
  expect(events[0]?.data).toMatchObject({ urgent: true, apply_at: new Date(ground.world.now).toISOString() });
  expect(await admin.unmarkImageUrgent({ image: "trixie-2" }, call)).toMatchObject({ urgent: false });
  await expect(admin.markImageUrgent({ ...urgent, image: "trixie-9" }, call)).rejects.toMatchObject({
    key: "OBJECT_NOT_FOUND",
  });
});
