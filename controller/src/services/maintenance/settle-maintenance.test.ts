import { createRolloutLimiter } from "./rollout-limiter.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/admin/v1/maintenance_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import { call, hourMs, maintenanceFixture } from "@holdfast/testing/machines/maintenance-fixture.ts";
import { methodsOf } from "@holdfast/testing/api/test-call.ts";
import { createMaintenanceAdminApi as createAdminApi } from "./maintenance-admin-api.ts";
import { createCollections } from "@holdfast/testing/controller/test-collections.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";

const fixture = await maintenanceFixture();

test("updates are announced a day ahead and begin at their time, once", async () => {
  const [id = ""] = await fixture.running();
  const waitMs = (await fixture.reconcile(id)) ?? 0;
  expect(await fixture.eventsOf(id)).toEqual([]);
  fixture.state.now += waitMs;
  expect(await fixture.reconcile(id)).toBe(24 * hourMs);
  fixture.state.now += 24 * hourMs - 1;
  expect(await fixture.reconcile(id)).toBe(1);
  fixture.state.now += 1;
  await fixture.reconcile(id);
  const [scheduled, started, ...more] = await fixture.eventsOf(id);
  expect(scheduled?.type).toBe("service.maintenance_scheduled");
  expect(scheduled?.data).toMatchObject({
    update_id: "trixie-2",
    apply_at: new Date(fixture.state.now).toISOString(),
    urgent: false,
  });
  expect(started?.data).toMatchObject({ automatic: true, update_ids: ["trixie-2"] });
  expect(more).toEqual([]);
});

test("one service of a small fleet is updated at a time", async () => {
  const ids = await fixture.running(3);
  fixture.state.now = Date.parse("2026-11-22T04:20:00Z");
  const busy = () => ids.filter((id) => fixture.objectOf(id).object.status.operationId !== null);
  const controller = fixture.controller();
  await Promise.all(ids.map((id) => fixture.reconcile(id, controller)));
  expect(busy()).toHaveLength(1);
  await fixture.end(busy()[0] ?? "");
  for (const id of ids) await fixture.reconcile(id, controller);
  expect(busy()).toHaveLength(1);
});

test("two controllers together begin no more than the fleet's share", async () => {
  const ids = await fixture.running(40);
  fixture.state.now = Date.parse("2026-11-22T04:20:00Z");
  const second = createCollections(fixture.store);
  await second.ready;
  const busy = () => ids.filter((id) => fixture.objectOf(id).object.status.operationId !== null);
  try {
    const controllers = [fixture.controller(), fixture.controller(second)];
    for (const round of [1, 2, 3]) {
      // Each owns half of the services.
      await Promise.all(ids.map((id, at) => fixture.reconcile(id, controllers[at % 2])));
      expect({ round, busy: busy().length }).toEqual({ round, busy: 2 });
      for (const id of busy()) await fixture.end(id);
    }
  } finally {
    second.close();
  }
});

test("nothing begins while maintenance is paused, except by request", async () => {
  const [id = ""] = await fixture.running();
  fixture.state.automationPauses = [{ kind: "clock", reason: "The wall clock jumped.", since: 0, until: null }];
  fixture.state.now = Date.parse("2026-11-22T04:20:00Z");
  expect(await fixture.reconcile(id)).toBe(15_000);
  // oxlint-disable-next-line holdfast/names -- a member of the API
  expect((await fixture.api().getMaintenance({ serviceId: id }, call)).held).toBeDefined();
  expect((await fixture.apply(id)).type).toBe("maintenance");
});

test("an image that failed on two services pauses maintenance", async () => {
  const { rolloutLimiter } = fixture.controller();
  await rolloutLimiter.failed("trixie-2", "one", "It did not start.", call.signal);
  await rolloutLimiter.failed("trixie-2", "one", "It did not start.", call.signal);
  await rolloutLimiter.failed("trixie-1", "another", "It did not start.", call.signal);
  expect(fixture.state.automationPauses).toEqual([]);
  await rolloutLimiter.failed("trixie-2", "another", "It did not start.", call.signal);
  expect(fixture.state.automationPauses).toMatchObject([{ kind: "maintenance", only: "maintenance", until: null }]);
  expect(fixture.state.automationPauses[0]?.reason).toContain("trixie-2 failed on 2 services");
  // Another controller, which has not seen the pause yet, begins nothing.
  const { key } = fixture.unlessPaused();
  await fixture.store.commit({
    conditions: [],
    puts: [{ key, value: JSON.stringify(fixture.state.automationPauses[0]) }],
    deletes: [],
  });
  const unit = fixture.begin();
  expect(await rolloutLimiter.claim(unit, uuidv7(), call.signal)).toBe(true);
  await expect(unit.commit()).rejects.toThrow(Conflict);
  await fixture.store.commit({ conditions: [], puts: [], deletes: [key] });
});

test("an image that failed on two services of one owner is skipped for that owner only", async () => {
  const { operations } = fixture.controller();
  const { rolloutRecords, ...others } = createCollections(fixture.store);
  await others.ready;
  const owners = new Map([
    ["a-1", "a"],
    ["a-2", "a"],
    ["b-1", "b"],
  ]);
  const entry = (id: string) => ({ object: { metadata: { organizationId: owners.get(id) ?? "" } } }) as never;
  const services = { size: 3, get: entry, values: () => [...owners.keys()].map(entry).values() };
  const pauses: string[] = [];
  const automationPauses = {
    list: () => [],
    set: async ({ reason }: { readonly reason: string }) => void pauses.push(reason),
    unlessPaused: () => ({ key: "/none", modRevision: 0n }),
  };
  const rolloutLimiter = createRolloutLimiter({
    begin: fixture.begin,
    services,
    operations,
    rolloutRecords,
    automationPauses,
    now: Date.now,
  });
  for (const id of ["a-1", "a-2"]) await rolloutLimiter.failed("trixie-9", id, "Its settings were bad.", call.signal);
  await expect.poll(() => rolloutLimiter.blocksOwner("a", "trixie-9")).toBe(true);
  expect(rolloutLimiter.blocksOwner("b", "trixie-9")).toBe(false);
  expect(rolloutLimiter.blocksOwner("a", "trixie-8")).toBe(false);
  expect(pauses).toEqual([]);
  await rolloutLimiter.failed("trixie-9", "b-1", "It did not start.", call.signal);
  expect(pauses).toHaveLength(1);
  others.close();
});

test("an urgent image is applied at its notice's end, outside of the window", async () => {
  const [id = ""] = await fixture.running();
  const admin = methodsOf(MaintenanceService, createAdminApi(fixture.controller()));
  const urgent = { image: "trixie-2", noticeHours: 2, reason: "CVE-2026-1234" };
  expect(await admin.markImageUrgent(urgent, call)).toMatchObject({ urgent: true, services: 0, noticeHours: 2 });
  expect(await fixture.reconcile(id)).toBe(2 * hourMs);
  fixture.state.now += 2 * hourMs;
  await fixture.reconcile(id);
  const events = await fixture.eventsOf(id);
  expect(events.map(({ type }) => type)).toEqual(["service.maintenance_scheduled", "service.maintenance_started"]);
  expect(events[0]?.data).toMatchObject({ urgent: true, apply_at: new Date(fixture.state.now).toISOString() });
  expect(await admin.unmarkImageUrgent({ image: "trixie-2" }, call)).toMatchObject({ urgent: false });
  await expect(admin.markImageUrgent({ ...urgent, image: "trixie-9" }, call)).rejects.toMatchObject({
    key: "OBJECT_NOT_FOUND",
  });
});
