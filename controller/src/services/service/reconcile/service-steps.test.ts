import { systemClock } from "@holdfast/common/clock.ts";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { runningMachine } from "@holdfast/testing/machines/machine-object.ts";
import { newServiceObject, node } from "@holdfast/testing/controller/service-object.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { defaultCatalog } from "#catalog/catalog.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict } from "#kernel/store/unit-of-work.ts";
import { createZoneRecords } from "#fleet/zone/zone-records.ts";
import { managedServiceKind, type ManagedServiceObject, type ManagedServiceSpec } from "../managed-service.ts";
import type { ObservedService, ServiceStep } from "./observed-service.ts";
import { createNameVerification } from "../network/name-verification.ts";
import { performServiceStep, type StepDeps } from "./service-steps.ts";
import { machineKind } from "#fleet/machine/machine.ts";

const { signal } = new AbortController();
let retained: TestStore;
beforeAll(async () => {
  retained = await startTestStore();
});
afterAll(() => retained?.close());

/** A service with its machine, and the dependencies of its steps in the store. */
async function makeService({ withMachine, spec = {} }: { withMachine: boolean; spec?: Partial<ManagedServiceSpec> }) {
  const { collections, begin } = retained;
  const { service: made } = newServiceObject();
  const service = { ...made, spec: { ...made.spec, ...spec } };
  const machine = runningMachine(node.id, { snapshot: { name: "op-1", restore: false } });
  const unit = begin();
  unit.create(managedServiceKind, service);
  if (withMachine) unit.create(machineKind, machine);
  await collections.untilRevision(await unit.commit(), 60_000);
  const zone = createZoneRecords(collections.records, systemClock);
  onTestFinished(async () => {
    zone.close();
    const remaining = begin();
    for (const { object } of collections.services.values())
      remaining.remove(managedServiceKind, read(object.metadata.id));
    for (const stored of collections.machines.values()) remaining.remove(machineKind, stored);
    await collections.untilRevision(await remaining.commit(), 60_000);
  });
  const read = (id: string) => collections.services.get(id) as Stored<ManagedServiceObject>;
  const { machines, records, operations, databaseUsers: users } = collections;
  const catalog = defaultCatalog;
  // None of these steps queries DNS servers or delivers to an agent.
  const names = createNameVerification(() => Promise.reject(new Error("nobody is asked")));
  const delivery = { deliver: () => expect.unreachable("nothing is delivered") };
  const backups = {
    instanceOf: () => ({}),
    canDeleteMachines: () => true,
    retainsDisks: () => false,
    newestRecoveryPoint: () => undefined,
    recordDeletion() {},
  };
  const deps: StepDeps = {
    backups,
    failureDetector: { leaseReport: () => undefined, trueForMs: () => 0, forget() {} },
    fences: { fence: () => expect.unreachable("no machine is fenced") },
    machines,
    hosts: collections.hosts,
    records,
    operations,
    users,
    begin,
    zone,
    catalog,
    sealer: { open: (sealed) => sealed },
    clock: systemClock,
    names,
    delivery,
    fleet: { run: () => expect.unreachable("nobody is asked") } as never,
    services: collections.services,
  };
  const agent = {
    connected: true,
    instance: undefined,
    stoppedForDrain: false,
    silentHost: undefined,
    isCurrent: true,
  };
  const observed: ObservedService = { nodes: [{ node, machine, ...agent }], names: "absent", isChanging: false };
  const perform = (step: ServiceStep, of: Stored<ManagedServiceObject>) =>
    performServiceStep(step, of, observed, deps, signal);
  return { service: read(service.metadata.id), perform, revision: () => retained.store.revision() };
}

async function change(before: Stored<ManagedServiceObject>): Promise<void> {
  const { collections, begin } = retained;
  const { metadata } = before.object;
  const unit = begin();
  unit.update(managedServiceKind, before, { ...before.object, metadata: { ...metadata, deletionRequestedAt: 1 } });
  await collections.untilRevision(await unit.commit(), 60_000);
}

const gib = 1024 ** 3;

test.each<[string, ServiceStep, boolean]>([
  ["makes no machine", { kind: "createMachine", node }, false],
  ["turns none off", { kind: "powerMachine", node, power: "off" }, true],
  ["puts no image under it", { kind: "installImage", node }, true],
  ["drops no snapshot", { kind: "deleteSnapshot", node }, true],
  ["gives none memory", { kind: "raiseMemory", node, memoryBytes: 8 * gib }, true],
  ["publishes no names", { kind: "publishNames" }, true],
])("a decision on an earlier version of a service %s once the service changes", async (_what, step, withMachine) => {
  const { service, perform, revision } = await makeService({ withMachine });
  await change(service);
  const before = await revision();
  await expect(perform(step, service)).rejects.toBeInstanceOf(Conflict);
  expect(await revision()).toBe(before);
});

test.each([
  ["mysql", 2, true],
  ["mysql", 1, false],
  ["postgresql", 2, false],
])("members of a %s with %d nodes get a new member's address: %j", async (databaseType, count, isDelivered) => {
  const nodes = [node, { ...node, id: "node-2", hostname: `second-${node.hostname}` }].slice(0, count);
  const numbers = count > 1 ? { nextNodeNumber: count + 1 } : {};
  const { service, perform } = await makeService({ withMachine: true, spec: { databaseType, nodes, ...numbers } });
  const { id } = service.object.metadata;
  const stored = () => retained.collections.services.get(id) as Stored<ManagedServiceObject>;
  const { instanceGeneration } = service.object.spec;
  await perform({ kind: "publishNames" }, service);
  await retained.collections.untilRevision(await retained.store.revision(), 60_000);
  expect(stored().object.spec.instanceGeneration).toBe(instanceGeneration + (isDelivered ? 1 : 0));
  await perform({ kind: "publishNames" }, stored());
  expect(stored().object.spec.instanceGeneration).toBe(instanceGeneration + (isDelivered ? 1 : 0));
});

test("a machine gets memory for a restore, in addition to a note, and returns it", async () => {
  const { service, perform } = await makeService({ withMachine: true });
  const spec = () => retained.collections.machines.get(node.id)?.object.spec;
  const { vcpu = 0, memoryBytes = 0, rootBytes = 0, diskBytes = 0 } = spec() ?? {};
  for (const raised of [8 * gib, 16 * gib]) {
    await perform({ kind: "raiseMemory", node, memoryBytes: raised }, service);
    expect(spec()).toMatchObject({ memoryBytes: raised, ownMemoryBytes: memoryBytes });
  }
  await perform({ kind: "fitMachine", node, size: { vcpu, memoryBytes, rootBytes, diskBytes } }, service);
  expect(spec()).toMatchObject({ memoryBytes });
  expect(spec()).not.toHaveProperty("ownMemoryBytes");
});

test("a service is not forgotten while a machine of its is there that was not seen when that was decided", async () => {
  const { service, perform, revision } = await makeService({ withMachine: true });
  const before = await revision();
  await expect(perform({ kind: "forget" }, service)).rejects.toBeInstanceOf(Conflict);
  expect(await revision()).toBe(before);
});
