import { UpdateKind } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { OperationStatus } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { uuidv7 } from "uuidv7";
import { expect, test } from "vitest";
import { call, hourMs, maintenanceFixture } from "@holdfast/testing/machines/maintenance-fixture.ts";
import { guestKernelSeries } from "@holdfast/compute/compute-provider.ts";
import { requestCommand } from "../service/service-commands.ts";
import { registerChanges } from "./image-inventory.ts";
import { hostKind } from "#fleet/host/host.ts";
import { nodeImageKind } from "./node-image.ts";

const fixture = await maintenanceFixture();

test("a repeated request for an image returns the same operation, also for two concurrent requests", async () => {
  const [id = ""] = await fixture.running();
  const [one, other] = await Promise.all([fixture.apply(id), fixture.apply(id)]);
  expect(one).toMatchObject({ type: "maintenance", status: OperationStatus.PENDING, serviceId: id });
  expect(other.id).toBe(one.id);
  expect((await fixture.apply(id, "trixie-2")).id).toBe(one.id);
  expect(fixture.objectOf(id).object.spec).toMatchObject({ image: "trixie-2", instanceGeneration: 5, restartCount: 0 });
  expect((await fixture.eventsOf(id)).map(({ type }) => type)).toEqual(["service.maintenance_started"]);
  const message = await fixture.api().getMaintenance({ serviceId: id }, call);
  expect(message).toMatchObject({ operation: { id: one.id }, updates: [], windowIsDefault: false });
});

test("waiting parameters are a restart", async () => {
  const [id = ""] = await fixture.running();
  fixture.state.pendingRestart = ["max_connections"];
  await fixture.apply(id, "restart");
  expect(fixture.objectOf(id).object.spec).toMatchObject({ image: "", instanceGeneration: 4, restartCount: 1 });
});

test("a newer guest kernel is listed once the host has it, and applied alone or with an image", async () => {
  const isVirtual = { kind: "virtual_machine", guestKernel: "guest-1" } as const;
  const [alone = "", both = ""] = await fixture.running(2, {}, isVirtual);
  const update = async (id: string) => (await fixture.api().getMaintenance({ serviceId: id }, call)).updates;
  expect((await update(alone)).map(({ id }) => id)).toEqual(["trixie-2"]);
  const facts = { ...guestKernelSeries, available: true, image: "guest-2", engineVersion: "6.12.57" };
  const unit = fixture.begin();
  for (const kernel of registerChanges([facts], [], new Set(), fixture.state.now - hourMs).added)
    unit.create(nodeImageKind, kernel);
  await fixture.collections.untilRevision(await unit.commit(), 60_000);
  // Registered, but not on the host yet.
  expect((await update(alone)).map(({ id }) => id)).toEqual(["trixie-2"]);
  await hasImages("trixie-1", "trixie-2", "guest-1", "guest-2");
  const message = await fixture.api().getMaintenance({ serviceId: alone }, call);
  expect(message).toMatchObject({ guestKernel: "guest-1", updates: [{ id: "trixie-2" }, { id: "guest-2" }] });
  expect(message.updates[1]).toMatchObject({ kind: UpdateKind.GUEST_KERNEL, from: "guest-1", to: "guest-2" });

  const { id: operationId } = await fixture.apply(alone, "guest-2");
  expect(fixture.objectOf(alone).object.spec).toMatchObject({
    image: "",
    guestKernel: "guest-2",
    instanceGeneration: 5,
    canary: { operationId },
  });
  await fixture.apply(both);
  expect(fixture.objectOf(both).object.spec).toMatchObject({
    image: "trixie-2",
    guestKernel: "guest-2",
    instanceGeneration: 5,
    restartCount: 0,
  });
});

async function hasImages(...imageIds: string[]): Promise<void> {
  const host = fixture.collections.hosts.get("a");
  if (host?.object.status.facts == null) throw new Error("the host is there");
  const { status } = host.object;
  const unit = fixture.begin();
  unit.update(hostKind, host, {
    ...host.object,
    status: { ...status, facts: { ...host.object.status.facts, imageIds } },
  });
  await fixture.collections.untilRevision(await unit.commit(), 60_000);
}

test("an image that changes the sort order is applied only if accepted, and blocks no other update", async () => {
  const [id = ""] = await fixture.running();
  fixture.state.textLibraries = ["ICU"];
  const unit = fixture.begin();
  for (const [image, ICU] of [
    ["trixie-1", "72.1"],
    ["trixie-2", "76.1"],
  ] as const) {
    const stored = fixture.collections.nodeImages.get(image);
    const facts = { engine: "postgresql", version: "17", available: true, image, textLibraries: { ICU } };
    const [made] = registerChanges([facts], [], new Set(), fixture.state.now - hourMs).added;
    if (made === undefined) throw new Error("no image");
    if (stored === undefined) unit.create(nodeImageKind, { ...made, status: { newestOf: [] } });
    else unit.update(nodeImageKind, stored, made);
  }
  await fixture.collections.untilRevision(await unit.commit(), 60_000);
  const refused = { key: "WRONG_STATE", message: expect.stringContaining("ICU 72.1 to 76.1") };
  await expect(fixture.apply(id)).rejects.toMatchObject(refused);
  await expect(fixture.apply(id, "trixie-2")).rejects.toMatchObject(refused);
  fixture.state.pendingRestart = ["max_connections"];
  await fixture.apply(id);
  expect(fixture.objectOf(id).object.spec).toMatchObject({ image: "", restartCount: 1 });
  await fixture.end(id);
  const accepted = { serviceId: id, updateIds: ["trixie-2"], acceptTextOrderChange: true };
  const { id: operationId } = await fixture.api().applyMaintenance(accepted, call);
  expect(fixture.objectOf(id).object.spec.image).toBe("trixie-2");
  expect(fixture.collections.operations.get(operationId)?.object.spec.work).toMatchObject({
    acceptsTextOrder: true,
  });
});

test("without pending updates the request is refused, and an unknown update is refused by its index", async () => {
  const [id = ""] = await fixture.running();
  await expect(fixture.apply(id, "trixie-2", "trixie-9")).rejects.toMatchObject({
    key: "INVALID_REQUEST",
    errors: [{ field: "update_ids[1]", code: "not_pending" }],
  });
  await fixture.apply(id);
  await fixture.end(id);
  await expect(fixture.apply(id)).rejects.toMatchObject({ key: "NOTHING_PENDING" });
});

test.each([
  ["is stopped", { state: "Stopped" as const }, "Start it first"],
  ["is in Error", { state: "Error" as const }, "must be Running"],
  ["is not healthy", { health: { status: "degraded" as const, since: 0, reason: "Full.", checks: [] } }, "Full."],
])("it is refused for a service that %s", async (_name, status, words) => {
  const [id = ""] = await fixture.running(1, status);
  await expect(fixture.apply(id)).rejects.toMatchObject({
    key: "WRONG_STATE",
    message: expect.stringContaining(words),
  });
});

test("an image is refused while a host does not respond, and a restart is not", async () => {
  const [id = ""] = await fixture.running();
  const host = fixture.collections.hosts.get("a");
  if (host === undefined) throw new Error("the host is there");
  const unit = fixture.begin();
  unit.update(hostKind, host, { ...host.object, status: { ...host.object.status, state: "unreachable" } });
  await fixture.collections.untilRevision(await unit.commit(), 60_000);
  const [update] = (await fixture.api().getMaintenance({ serviceId: id }, call)).updates;
  expect(update).toMatchObject({ id: "trixie-2", blockedReason: expect.stringContaining("Host a of its machines") });
  await expect(fixture.apply(id)).rejects.toThrow(update?.blockedReason);
  fixture.state.now = Date.parse("2026-11-22T04:20:00Z");
  expect(await fixture.reconcile(id)).toBe(15_000);
  fixture.state.pendingRestart = ["max_connections"];
  expect((await fixture.apply(id, "restart")).type).toBe("maintenance");
});

test("another operation is refused while it runs, and a deletion cancels it", async () => {
  const [id = ""] = await fixture.running();
  const { id: operationId } = await fixture.apply(id);
  const operation = fixture.collections.operations.get(operationId)?.object;
  expect(() =>
    requestCommand(fixture.objectOf(id).object, "restart", operation, {
      operationId: uuidv7(),
      now: fixture.state.now,
    }),
  ).toThrow(/in progress/);
  const deletion = requestCommand(fixture.objectOf(id).object, "delete", operation, {
    operationId: uuidv7(),
    now: fixture.state.now,
  });
  expect(deletion).toMatchObject({ kind: "change", ended: { status: { state: "cancelled" } } });
});
