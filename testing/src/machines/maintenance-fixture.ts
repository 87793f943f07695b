import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { type AutomationPause, pausePrefix } from "@holdfast/controller/kernel/clock/automation-pauses.ts";
import { type Collections, createCollections } from "../controller/test-collections.ts";
import type { SessionFacts } from "@holdfast/controller/fleet/session/session-facts.ts";
import { machineKind, type MachineSpecObject } from "@holdfast/controller/fleet/machine/machine.ts";
import { rolloutRecordKind, rolloutRecordId } from "@holdfast/controller/services/maintenance/rollout-record.ts";
import { registerChanges } from "@holdfast/controller/services/maintenance/image-inventory.ts";
import { createMaintenanceApi } from "@holdfast/controller/services/maintenance/maintenance-api.ts";
import { createRolloutLimiter } from "@holdfast/controller/services/maintenance/rollout-limiter.ts";
import { settleMaintenance } from "@holdfast/controller/services/maintenance/settle-maintenance.ts";
import {
  managedServiceKind,
  type ManagedServiceObject,
} from "@holdfast/controller/services/service/managed-service.ts";
import { createServiceAccess } from "@holdfast/controller/services/service/service-access.ts";
import { completed, operationKind } from "@holdfast/controller/operation/operation.ts";
import { createCursors } from "@holdfast/controller/kernel/page/cursor.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { retryConflict } from "@holdfast/controller/kernel/store/retry-conflict.ts";
import { createUnitOfWork } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import { InstanceObservationSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { CheckEngineUpgradeResultSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { MaintenanceService } from "@holdfast/proto/holdfast/v1/maintenance_pb.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, afterEach, beforeEach } from "vitest";
import { startTestEtcd } from "../controller/etcd.ts";
import { runningMachine } from "./machine-object.ts";
import { readyHost } from "../platform/ready-host.ts";
import { nodeOf, runningService } from "../controller/service-object.ts";
import { methodsOf, testCall } from "../api/test-call.ts";
import { nodeImageKind } from "@holdfast/controller/services/maintenance/node-image.ts";
import { hostKind } from "@holdfast/controller/fleet/host/host.ts";

export const hourMs = 3_600_000;
const monday = Date.parse("2026-11-16T12:00:00Z");

/** State that a test may change. */
interface MaintenanceState {
  now: number;
  automationPauses: AutomationPause[];
  /** Parameters of every engine that wait for a restart. */
  pendingRestart: string[];
  /** Libraries by which every engine orders texts. */
  textLibraries: string[];
}

export const call = testCall();

/** A fixture for all tests of a file: prepared before each of them, and cleared afterwards. */
export async function maintenanceFixture() {
  const ground = await startMaintenanceFixture();
  beforeEach(() => ground.prepare());
  afterEach(() => ground.clear());
  afterAll(() => ground.stop());
  return ground;
}

/**
 * Services, machines and images in a real etcd, for maintenance to begin on. No reconciler runs here: an operation is
 * in progress until a test ends it.
 */
async function startMaintenanceFixture() {
  const etcd = await startTestEtcd();
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const collections = createCollections(store);
  await collections.ready;
  const state: MaintenanceState = { now: monday, automationPauses: [], pendingRestart: [], textLibraries: [] };
  const clock = { now: () => state.now, monotonicMs: () => state.now };
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const begin = () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 });
  const unlessPaused = () => ({ key: `${pausePrefix}maintenance`, modRevision: 0n });
  const fleet = {
    session: () => ({ bootId: "b" }) as SessionFacts,
    observation: () => ({
      instance: create(InstanceObservationSchema, {
        state: "running",
        engineVersion: "17.10",
        pendingRestart: state.pendingRestart,
        textLibraries: state.textLibraries,
      }),
      observedAt: 0,
      bootId: "b",
    }),
  };

  /** A controller's parts, with the memory of another controller if `memory` is given. */
  function controller(memory: Collections = collections) {
    const { services, operations, machines, hosts, nodeImages, rolloutRecords } = memory;
    const access = createServiceAccess({ services, operations });
    const automationPauses = {
      list: () => state.automationPauses,
      set: async (pause: AutomationPause) => void state.automationPauses.push(pause),
      unlessPaused,
    };
    const rolloutLimiter = createRolloutLimiter({
      begin,
      services,
      operations,
      rolloutRecords,
      automationPauses,
      now: clock.now,
    });
    const collected = { services, operations, machines, hosts, nodeImages };
    return {
      ...collected,
      begin,
      access,
      fleet,
      // The data of an engine that does not run never prevent an upgrade.
      tasks: { run: async () => create(CheckEngineUpgradeResultSchema) as never },
      rolloutLimiter,
      newestRestorePointOf: () => undefined,
      clock,
      cursors: createCursors(sealer),
      newId: uuidv7,
      log: silentLog,
    };
  }

  function api() {
    const served = createMaintenanceApi({
      ...controller(),
      maintenancePaused: () => state.automationPauses.length > 0,
    });
    return methodsOf(MaintenanceService, served);
  }

  function objectOf(id: string) {
    const stored = collections.services.get(id);
    if (stored === undefined) throw new Error(`no service ${id}`);
    return stored;
  }

  return {
    store,
    collections,
    state,
    begin,
    unlessPaused,
    controller,
    objectOf,
    api,
    apply: (serviceId: string, ...updateIds: string[]) => api().applyMaintenance({ serviceId, updateIds }, call),

    /** The initial state: a Monday at noon, with an image from an hour ago. */
    async prepare(): Promise<void> {
      Object.assign(state, { now: monday, automationPauses: [], pendingRestart: [], textLibraries: [] });
      const unit = begin();
      const facts = [
        { engine: "postgresql", version: "17", available: true, image: "trixie-2", engineVersion: "17.11" },
      ];
      unit.create(hostKind, readyHost("a", {}, { imageIds: ["trixie-1", "trixie-2"] }));
      for (const image of registerChanges(facts, [], new Set(), monday - hourMs).added)
        unit.create(nodeImageKind, image);
      await collections.untilRevision(await unit.commit(), 60_000);
    },

    /** Deletes everything that a test created. */
    async clear(): Promise<void> {
      const unit = begin();
      for (const stored of collections.services.values()) unit.remove(managedServiceKind, stored);
      for (const stored of collections.operations.values()) unit.remove(operationKind, stored);
      for (const stored of collections.machines.values()) unit.remove(machineKind, stored);
      for (const stored of collections.hosts.values()) unit.remove(hostKind, stored);
      for (const stored of collections.nodeImages.values()) unit.remove(nodeImageKind, stored);
      const record = await collections.rolloutRecords.getCurrent(rolloutRecordId);
      if (record !== undefined) unit.remove(rolloutRecordKind, record);
      await collections.untilRevision(await unit.commit(), 60_000);
    },

    /** Services that run from an older image, in a window that opens on Sunday at three. */
    async running(
      count = 1,
      change: Partial<ManagedServiceObject["status"]> = {},
      machine: Partial<MachineSpecObject> = {},
    ): Promise<string[]> {
      const unit = begin();
      const ids = Array.from({ length: count }, () => {
        const id = uuidv7();
        const metadata = { id, name: id, organizationId: "o" };
        const spec = { nodes: [nodeOf(id)], instanceGeneration: 3, maintenanceWindow: { day: 6, hour: 3 } };
        unit.create(managedServiceKind, runningService(metadata, spec, { primaryNodeId: id, nodes: [], ...change }));
        unit.create(machineKind, runningMachine(id, { image: "trixie-1", hostId: "a", ...machine }));
        return id;
      });
      await collections.untilRevision(await unit.commit(), 60_000);
      return ids;
    },

    /** Reconciles until nothing more is written; a controller that loses a conflict tries again. */
    async reconcile(id: string, from = controller()): Promise<number | null> {
      for (;;) {
        const looked = await retryConflict(call.signal, () => settleMaintenance(objectOf(id), from, call.signal)).catch(
          (error: unknown) => {
            // The write is not in a busy controller's memory yet: a reconciler is retried, too.
            if (error instanceof HoldfastError && error.key === "STORE_UNAVAILABLE") return undefined;
            throw error;
          },
        );
        if (looked !== undefined && looked.written === undefined) return looked.recheckInMs;
      }
    },

    /** Ends the operation of the service. */
    async end(id: string): Promise<void> {
      const { object } = objectOf(id);
      const operation = collections.operations.get(object.status.operationId ?? "");
      if (operation === undefined) throw new Error(`service ${id} has no operation`);
      const unit = begin();
      unit.update(operationKind, operation, completed(operation.object, state.now));
      unit.update(managedServiceKind, objectOf(id), { ...object, status: { ...object.status, operationId: null } });
      await collections.untilRevision(await unit.commit(), 60_000);
    },

    /** Events in the outbox about a service, in order. */
    async eventsOf(id: string): Promise<{ type: string; data: object }[]> {
      const { values } = await store.list("/holdfast/v1/outbox/", { limit: 500 });
      return values
        .map(({ value }) => JSON.parse(value) as { entry: string; type: string; objectId: string; data: object })
        .filter(({ entry, objectId }) => entry === "event" && objectId === id);
    },

    async stop(): Promise<void> {
      collections.close();
      await store.close();
      await etcd.stop();
    },
  };
}
