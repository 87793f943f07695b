import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import type { ManagedServiceObject, ManagedServiceStatus } from "../managed-service/managed-service.ts";
import { again, type Outcome } from "../runtime/reconciler.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import type { OperationObject } from "../operation/operation.ts";
import { beginMaintenance } from "./begin-maintenance.ts";
import type { MaintenanceBrake } from "./maintenance-brake.ts";
import { scheduledEvent, startedEvent } from "./maintenance-events.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import { type MaintenanceWorldDeps, maintenanceWorld } from "./maintenance-world.ts";

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

/** As many are at it as may be: one of them ends soon. */
const brakedLookMs = 5_000;

/** What came of a look at a service's pending updates. */
export type MaintenanceLook =
  /** Something was written: look at the service anew. */
  | { readonly written: Outcome }
  /** When the next one is due; null when only a change matters. */
  | { readonly written: undefined; readonly lookAgainMs: number | null };

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
    const operationId = deps.newId();
    if (!(await deps.brake.claim(unit, operationId, signal))) return { written: undefined, lookAgainMs: brakedLookMs };
    const asked = { operationId, automatic: true, now };
    const { after, operation } = beginMaintenance(object, updates, world, asked);
    unit.create("operation", operation);
    unit.update("managed-service", service, after);
    unit.event(startedEvent(after, operation));
    deps.log.info("maintenance begins", { service: object.metadata.id, updates: operation.spec.maintenance?.updates });
  } else if (planned.action === "announce") {
    unit.update("managed-service", service, withMaintenance(object, { ...maintenance, announced: planned.known }));
    for (const update of planned.updates) unit.event(scheduledEvent(object, update, now));
  } else {
    const { restartSince } = planned;
    unit.update("managed-service", service, withMaintenance(object, { ...maintenance, restartSince }));
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
