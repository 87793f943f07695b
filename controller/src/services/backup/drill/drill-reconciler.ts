import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { RestoreSource } from "@holdfast/proto/holdfast/agent/v1/backup_pb.ts";
import type { CatalogData } from "#catalog/catalog.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { HostObject } from "#fleet/host/host.ts";
import { isUp, machineKind, type MachineObject } from "#fleet/machine/machine.ts";
import { resizeMachine } from "#fleet/placement/resize-machine.ts";
import { findOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { WorkloadDelivery } from "#fleet/task/workload-delivery.ts";
import type { ManagedServiceObject } from "../../service/managed-service.ts";
import type { ServiceOrigin } from "../../service/service-origin.ts";
import { replayMemoryOf } from "../restore/replay-memory.ts";
import { type DrillIndex, drillKind, type DrillObject, isFinished, originOf } from "./drill.ts";
import { instanceOf, machineOf } from "./drill-machine.ts";
import { type ObservedDrill, planDrill } from "./drill-plan.ts";
import { advanceDrill } from "./drill-steps.ts";

export interface DrillWorkDeps {
  readonly drills: Collection<DrillObject>;
  readonly drillIndex: DrillIndex;
  readonly services: Collection<ManagedServiceObject>;
  readonly machines: Collection<MachineObject>;
  readonly hosts: Pick<Collection<HostObject>, "get" | "getCurrent">;
  readonly operations: Collection<OperationObject>;
  readonly fleet: Pick<Fleet, "session" | "observation" | "subscribe">;
  readonly delivery: WorkloadDelivery;
  /** The backup, log and keys that a machine restores from. */
  readonly restoreSource: (origin: ServiceOrigin) => RestoreSource;
  readonly catalog: CatalogData;
  readonly begin: () => UnitOfWork;
  readonly newId: () => string;
  readonly clock: Clock;
  readonly log: Log;
}

/** Maximum number of running drills in the installation: each drill needs a machine of its service's size. */
const runningMax = 2;
/** Maximum number of drills retained for each service, including those in progress. */
const retainedPerService = 20;
const recheckMs = 15_000;
const shortRecheckMs = 1_000;

/**
 * Drills: restores a service's backups on a new machine, examines the data, and deletes the machine. Key: drill id.
 *
 * `drill-schedule.ts` and the API create drills (`drill-creation.ts`); `drill-plan.ts` decides the next step,
 * `drill-steps.ts` computes the objects that it writes.
 */
export function createDrillWork(deps: DrillWorkDeps): ControlLoop {
  const { drills, drillIndex, services, machines, operations, fleet, clock, log } = deps;

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const stored = drills.get(id);
    if (stored === undefined) return settled;
    const { object: drill } = stored;
    const now = clock.now();
    await machines.untilRevision(stored.modRevision, 1_000);
    const step = planDrill(drill, await observe(drill, signal), now);
    if (step.kind === "deleteMachine") return deleteMachine(drill, now, signal);
    if (step.kind === "settled") return isFinished(drill) ? deleteIfOld(stored, signal) : settled;
    const operation = await findOperation(operations, drill.spec.operationId, signal);
    const machineId = deps.newId();
    const after = advanceDrill(drill, operation?.object, step, now, machineId);
    if (after.drill !== drill || after.operation !== operation?.object) {
      const unit = deps.begin();
      if (after.drill !== drill) unit.update(drillKind, stored, after.drill);
      if (operation !== undefined && after.operation !== undefined && after.operation !== operation.object)
        unit.update(operationKind, operation, after.operation);
      if (step.kind === "begin") unit.create(machineKind, machineOf(after.drill, machineId, deps.catalog, now));
      for (const event of after.events) unit.event(event);
      await drills.untilRevision(await unit.commit(signal), 1_000);
      logTransition(drill, after.drill);
      if (after.drill.status.state !== drill.status.state || step.kind === "examined") return again(0, step.kind);
    }
    if (step.kind === "raiseMemory") return raiseMemory(drill, step.memoryBytes, signal);
    if (step.kind === "deliver") deliver(drill);
    return again(step.kind === "deliver" ? shortRecheckMs : recheckMs, step.kind);
  }

  async function observe(drill: DrillObject, signal: AbortSignal): Promise<ObservedDrill> {
    const { serviceId } = drill.spec;
    const service = (services.get(serviceId) ?? (await services.getCurrent(serviceId, signal)))?.object;
    const { machineId } = drill.status;
    const machine = machineId === null ? undefined : machines.get(machineId)?.object;
    const session = machineId === null ? undefined : fleet.session(machineId);
    const observation = machineId === null ? undefined : fleet.observation(machineId);
    const isCurrent = session !== undefined && observation?.bootId === session.bootId;
    const { restore } = (isCurrent ? observation?.instance : undefined) ?? {};
    const isOfCurrent = restore?.restoreId === originOf(drill)?.restoreId;
    const replayMemory = isOfCurrent ? replayMemoryOf(restore, machine, deps) : undefined;
    return {
      ...(replayMemory !== undefined && { replayMemory }),
      machine,
      connected: machine !== undefined && isUp(machine) && session !== undefined,
      instance: isCurrent ? observation.instance : undefined,
      serviceExists: service !== undefined && service.metadata.deletionRequestedAt === undefined,
      hasCapacity: drillIndex.running() < runningMax,
    };
  }

  async function raiseMemory(drill: DrillObject, memoryBytes: number, signal: AbortSignal): Promise<ReconcileOutcome> {
    const machine = machines.get(drill.status.machineId ?? "");
    if (machine === undefined) return again(shortRecheckMs, "memory is stale");
    const { vcpu, rootBytes, diskBytes } = machine.object.spec;
    const unit = deps.begin();
    await resizeMachine(machine.object.metadata.id, { vcpu, memoryBytes, rootBytes, diskBytes }, unit, deps, signal);
    await machines.untilRevision(await unit.commit(signal), 1_000);
    log.info("drill's machine gets more memory", { drill: drill.metadata.id, memoryBytes });
    return again(shortRecheckMs, "the machine gets more memory");
  }

  function deliver(drill: DrillObject): void {
    const { machineId } = drill.status;
    const machine = machineId === null ? undefined : machines.get(machineId)?.object;
    const origin = originOf(drill);
    if (machine === undefined || origin === undefined) return;
    const value = instanceOf(drill, machine, deps.restoreSource(origin), deps.catalog);
    deps.delivery.deliver(machine.metadata.id, { workload: { case: "engine", value } });
  }

  async function deleteMachine(drill: DrillObject, now: number, signal: AbortSignal): Promise<ReconcileOutcome> {
    const machine = machines.get(drill.status.machineId ?? "");
    if (machine === undefined) return again(shortRecheckMs, "memory is stale");
    const unit = deps.begin();
    const metadata = { ...machine.object.metadata, deletionRequestedAt: now, updatedAt: now };
    unit.update(machineKind, machine, { ...machine.object, metadata });
    await machines.untilRevision(await unit.commit(signal), 1_000);
    return again(recheckMs, "the machine is being deleted");
  }

  /** Deletes a drill without a machine if its service is deleted or has 20 newer ones. */
  async function deleteIfOld({ object: drill }: Stored<DrillObject>, signal: AbortSignal): Promise<ReconcileOutcome> {
    const { machineId } = drill.status;
    if (machineId !== null && (await machines.getCurrent(machineId, signal)) !== undefined)
      return again(recheckMs, "the machine is being deleted");
    const { serviceId } = drill.spec;
    const all = drillIndex.of(serviceId);
    const isDeleted =
      services.get(serviceId) === undefined && (await services.getCurrent(serviceId, signal)) === undefined;
    const isOld = all.length - all.findIndex(({ metadata }) => metadata.id === drill.metadata.id) > retainedPerService;
    const stored = drills.get(drill.metadata.id);
    if (stored === undefined || (!isDeleted && !isOld)) return settled;
    const unit = deps.begin();
    unit.remove(drillKind, stored);
    await drills.untilRevision(await unit.commit(signal), 1_000);
    return settled;
  }

  function logTransition(before: DrillObject, { metadata, spec, status }: DrillObject): void {
    if (before.status.state === status.state) return;
    const reason = status.error === null ? {} : { code: status.error.code, reason: status.error.message };
    const { serviceId: service } = spec;
    log.info("drill state changed", {
      service,
      drill: metadata.id,
      from: before.status.state,
      to: status.state,
      ...reason,
    });
  }

  return {
    reconciler: { name: "drill", reconcile },
    *keys() {
      for (const { object } of drills.values()) yield object.metadata.id;
    },
    inputs(id) {
      const drill = drills.get(id);
      const service = drill && services.get(drill.object.spec.serviceId);
      return `${drill?.modRevision ?? 0} ${service?.modRevision ?? 0} ${drillIndex.of(drill?.object.spec.serviceId ?? "").length}`;
    },
    subscribe(onChange) {
      const ofMachine = (machineId: string) => {
        const owner = machines.get(machineId)?.object.spec.owner;
        if (owner?.kind === "drill") onChange(owner.id);
      };
      const watches = [drills.subscribe(onChange), machines.subscribe(ofMachine), fleet.subscribe(ofMachine)];
      return {
        close() {
          for (const watch of watches) watch.close();
        },
      };
    },
  };
}
