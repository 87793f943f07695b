import type { Clock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { startedEvent } from "./maintenance-events.ts";
import {
  managedServiceKind,
  type ManagedServiceObject,
  type ManagedServiceStatus,
} from "../service/managed-service.ts";
import { serviceEvent } from "../service/service-events.ts";
import { operationKind, type OperationObject } from "#operation/operation.ts";
import { again, type ReconcileOutcome } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { beginMaintenance } from "./begin-maintenance.ts";
import type { RolloutLimiter } from "./rollout-limiter.ts";
import { planMaintenance } from "./maintenance-plan.ts";
import { type MaintenanceContextDeps, maintenanceContext } from "./maintenance-context.ts";
import type { PendingUpdate } from "./pending-update.ts";
import { serviceOperations } from "../service/service-operations.ts";

export interface MaintenanceDeps {
  readonly nodeImages: MaintenanceContextDeps["nodeImages"];
  readonly begin: () => UnitOfWork;
  readonly services: Collection<ManagedServiceObject>;
  readonly operations: Collection<OperationObject>;
  readonly rolloutLimiter: RolloutLimiter;
  readonly clock: Clock;
  readonly newId: () => string;
  readonly log: Log;
}

/** Maintenance of one service, for the reconciler of services. */
export function createServiceMaintenance(deps: MaintenanceDeps & MaintenanceContextDeps): ServiceMaintenance {
  return {
    settle: (service, signal) => settleMaintenance(service, deps, signal),
    failed: deps.rolloutLimiter.failed,
  };
}

/** Delay of the next check if the rollout limiter admits no operation. */
const limitedRecheckMs = 5_000;
/** Delay of the next check if the limiter skips the owner's services for the image. */
const blockedRecheckMs = 600_000;

/**
 * Records, announces or begins due updates of the service. `maintenance-plan.ts` decides, from the updates that
 * `pending-updates.ts` computes of the context (`maintenance-context.ts`); `rollout-limiter.ts` limits the
 * number of concurrent operations.
 */
export async function settleMaintenance(
  service: Stored<ManagedServiceObject>,
  deps: MaintenanceDeps & MaintenanceContextDeps,
  signal: AbortSignal,
): Promise<MaintenanceOutcome> {
  const { object } = service;
  const now = deps.clock.now();
  const context = maintenanceContext(object, deps, now);
  const planned = planMaintenance(object, context, deps.rolloutLimiter.mayBegin);
  if (planned.action === "none") return { written: undefined, recheckInMs: planned.recheckInMs };
  const unit = deps.begin();
  const { maintenance } = object.status;
  if (planned.action === "begin") {
    const { updates } = planned;
    const { organizationId } = object.metadata;
    if (updates.some(({ id }) => deps.rolloutLimiter.blocksOwner(organizationId, id)))
      return { written: undefined, recheckInMs: blockedRecheckMs };
    const operationId = deps.newId();
    if (!(await deps.rolloutLimiter.claim(unit, operationId, signal)))
      return { written: undefined, recheckInMs: limitedRecheckMs };
    const request = { operationId, automatic: true, now };
    const { after, operation } = beginMaintenance(object, updates, context, request);
    unit.create(operationKind, operation);
    unit.update(managedServiceKind, service, after);
    unit.event(startedEvent(after, operation));
    deps.log.info("maintenance started", {
      service: object.metadata.id,
      updates: serviceOperations.maintenance.workOf(operation)?.updates,
    });
  } else if (planned.action === "announce") {
    unit.update(managedServiceKind, service, withMaintenance(object, { ...maintenance, announced: planned.announced }));
    for (const update of planned.updates) unit.event(scheduledEvent(object, update, now));
  } else {
    const { action: _, ...recorded } = planned;
    unit.update(managedServiceKind, service, withMaintenance(object, { ...maintenance, ...recorded }));
  }
  const revision = await unit.commit(signal);
  await Promise.all([deps.services.untilRevision(revision, 1_000), deps.operations.untilRevision(revision, 1_000)]);
  return { written: again(0, planned.action) };
}

function withMaintenance(
  service: ManagedServiceObject,
  maintenance: ManagedServiceStatus["maintenance"],
): ManagedServiceObject {
  return { ...service, status: { ...service.status, maintenance } };
}

/** Event of an update whose time was set or changed. */
function scheduledEvent(service: ManagedServiceObject, update: PendingUpdate, now: number): NewEvent {
  return serviceEvent("service.maintenance_scheduled", service, {
    update_id: update.id,
    kind: update.kind,
    title: update.title,
    urgent: update.urgent,
    apply_at: new Date(update.applyAt ?? now).toISOString(),
  });
}

/** Result of a check of a service's pending updates. */
type MaintenanceOutcome =
  /** The service was written, so the caller must read it again. */
  | { readonly written: ReconcileOutcome }
  /** Milliseconds until the next check; null if none is needed before a change. */
  | { readonly written: undefined; readonly recheckInMs: number | null };

/** Maintenance of a service, for the reconciler of services. */
export interface ServiceMaintenance {
  /** Records, announces or begins due updates. */
  settle(service: Stored<ManagedServiceObject>, signal: AbortSignal): Promise<MaintenanceOutcome>;
  /** Reports an image that failed on a service, before the service records it. */
  failed(image: string, serviceId: string, reason: string, signal: AbortSignal): Promise<void>;
}
