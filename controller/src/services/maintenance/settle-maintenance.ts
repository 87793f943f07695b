import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { startedEvent } from "../service/maintenance-events.ts";
import {
  managedServiceKind,
  type ManagedServiceObject,
  type ManagedServiceStatus,
} from "../service/managed-service.ts";
import { serviceEvent } from "../service/service-events.ts";
import type { MaintenanceLook, ServiceMaintenance } from "../service/service-maintenance.ts";
import { operationKind, type OperationObject, workOf } from "#operation/operation.ts";
import { again } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { beginMaintenance } from "./begin-maintenance.ts";
import type { MaintenanceBrake } from "./maintenance-brake.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import { type MaintenanceWorldDeps, maintenanceWorld } from "./maintenance-world.ts";
import type { PendingUpdate } from "./pending-update.ts";

export interface MaintenanceDeps {
  readonly nodeImages: MaintenanceWorldDeps["nodeImages"];
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly brake: MaintenanceBrake;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

/** What is due of pending updates, for the reconciler of services. */
export function createServiceMaintenance(deps: MaintenanceDeps & MaintenanceWorldDeps): ServiceMaintenance {
  return {
    settle: (service, signal) => settleMaintenance(service, deps, signal),
    failed: deps.brake.failed,
  };
}

/** As many are at it as may be: one of them ends soon. */
const brakedLookMs = 5_000;
/** Until there is another image. */
const sparedLookMs = 600_000;

/** Notes, announces or begins what is due of the service's pending updates. */
export async function settleMaintenance(
  service: Stored<ManagedServiceObject>,
  deps: MaintenanceDeps & MaintenanceWorldDeps,
  signal: AbortSignal,
): Promise<MaintenanceLook> {
  const { object } = service;
  const now = deps.clock.now();
  const world = maintenanceWorld(object, deps, now);
  const planned = planMaintenance(object, world, deps.brake.mayBegin);
  if (planned.action === "none") return { written: undefined, lookAgainMs: planned.lookAgainMs };
  const unit = deps.begin();
  const { maintenance } = object.status;
  if (planned.action === "begin") {
    const { updates } = planned;
    const { organizationId } = object.metadata;
    if (updates.some(({ id }) => deps.brake.spares(organizationId, id)))
      return { written: undefined, lookAgainMs: sparedLookMs };
    const operationId = deps.newId();
    if (!(await deps.brake.claim(unit, operationId, signal))) return { written: undefined, lookAgainMs: brakedLookMs };
    const asked = { operationId, automatic: true, now };
    const { after, operation } = beginMaintenance(object, updates, world, asked);
    unit.create(operationKind, operation);
    unit.update(managedServiceKind, service, after);
    unit.event(startedEvent(after, operation));
    deps.log.info("maintenance begins", {
      service: object.metadata.id,
      updates: workOf(operation, "maintenance")?.updates,
    });
  } else if (planned.action === "announce") {
    unit.update(managedServiceKind, service, withMaintenance(object, { ...maintenance, announced: planned.known }));
    for (const update of planned.updates) unit.event(scheduledEvent(object, update, now));
  } else {
    const { action: _, ...noted } = planned;
    unit.update(managedServiceKind, service, withMaintenance(object, { ...maintenance, ...noted }));
  }
  const revision = await unit.commit(signal);
  await Promise.all([deps.services.reached(revision, 1_000), deps.operations.reached(revision, 1_000)]);
  return { written: again(0, planned.action) };
}

function withMaintenance(
  service: ManagedServiceObject,
  maintenance: ManagedServiceStatus["maintenance"],
): ManagedServiceObject {
  return { ...service, status: { ...service.status, maintenance } };
}

/** One update has a time now, or another one than before. */
function scheduledEvent(service: ManagedServiceObject, update: PendingUpdate, now: number): NewEvent {
  return serviceEvent("service.maintenance_scheduled", service, {
    update_id: update.id,
    kind: update.kind,
    title: update.title,
    urgent: update.urgent,
    apply_at: new Date(update.applyAt ?? now).toISOString(),
  });
}
