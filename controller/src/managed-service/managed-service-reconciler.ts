import type { Log } from "@holdfast/common/log.ts";
import { findOperation } from "../operation/find-operation.ts";
import { engineMayFailForMs } from "./trial/image-trial.ts";
import { cancelled } from "../operation/operation.ts";
import { again, type Outcome, type Reconciler, settled } from "../runtime/reconciler.ts";
import type { Collection } from "../store/collection.ts";
import { keyOf, type Stored } from "../store/resource.ts";
import { Conflict, type UnitOfWork } from "../store/unit-of-work.ts";
import type { ManagedServiceObject } from "./managed-service.ts";
import { engineFailedForMs, type ObservedService, planManagedService } from "./managed-service-plan.ts";
import { advance } from "./service-advance.ts";
import { requestDeletion } from "./service-deletion.ts";
import { serviceEvent } from "./service-events.ts";
import { expiryOf } from "./service-expiry.ts";
import type { ServiceMaintenance } from "./service-maintenance.ts";
import { type ObserverDeps, observeService } from "./service-observer.ts";
import { performServiceStep, type StepDeps } from "./service-steps.ts";

export interface ManagedServiceReconcilerDeps extends StepDeps, ObserverDeps {
  readonly services: Collection<ManagedServiceObject>;
  readonly maintenance: ServiceMaintenance;
  /** Do deletions by time wait now? */
  readonly held: () => boolean;
  /** Did the wall clock jump, a while ago at the most? */
  readonly clockJumped: () => boolean;
  readonly newId: () => string;
  readonly log: Log;
}

/** Converges one managed service: observe, plan, perform, write what is. Key: service id. */
export function createManagedServiceReconciler(deps: ManagedServiceReconcilerDeps): Reconciler {
  return {
    name: "managed-service",
    async reconcile(id, signal) {
      const service = deps.services.get(id);
      if (service === undefined) return settled;
      const expiry = await settleExpiry(service, deps, signal);
      if (expiry !== undefined) return expiry;
      const maintenance = await deps.maintenance.settle(service, signal);
      if (maintenance.written !== undefined) return maintenance.written;

      const steps = planManagedService(service.object, observeService(service.object, deps));
      for (const step of steps)
        await performServiceStep(step, service, observeService(service.object, deps), deps, signal);
      if (steps.some((step) => step.kind === "forget")) return settled;

      const observed = observeService(service.object, deps);
      await writeStatus(service, observed, deps, signal);
      return lookAgain(service.object, observed, maintenance.lookAgainMs, deps);
    },
  };
}

function lookAgain(
  service: ManagedServiceObject,
  observed: ObservedService,
  maintenanceInMs: number | null,
  deps: ManagedServiceReconcilerDeps,
): Outcome {
  const rest = planManagedService(service, observed);
  const [step] = rest;
  if (step !== undefined) return again(step.kind === "converge" ? 2_000 : 50, step.kind);
  const hasFailed = observed.nodes.some(({ instance }) => instance?.state === "failed");
  if (service.status.operationId !== null)
    return again(hasFailed ? engineMayFailForMs : 15_000, "operation in progress");
  if (hasFailed) return again(engineFailedForMs, "engine failed");
  const expiry = expiryOf(service, deps.clock.now(), deps.held());
  const timed = [expiry.action === "none" ? expiry.lookAgainMs : null, maintenanceInMs].filter((ms) => ms !== null);
  // Timers of Node end at 2^31 ms; a longer wait is split.
  return timed.length === 0 ? settled : again(Math.min(...timed, 86_400_000), "expiry or maintenance");
}

/** Announces or carries out the end of the service's time to live. Undefined when there is nothing to do about it. */
async function settleExpiry(
  service: Stored<ManagedServiceObject>,
  deps: ManagedServiceReconcilerDeps,
  signal: AbortSignal,
): Promise<Outcome | undefined> {
  const { object } = service;
  const now = deps.clock.now();
  const expiry = expiryOf(object, now, deps.held());
  if (expiry.action === "none") return undefined;
  const unit = deps.begin();
  if (expiry.action === "delete") {
    const { after, operation } = requestDeletion(object, deps.newId(), now);
    const current = await findOperation(deps.operations, object.status.operationId, signal);
    if (current !== undefined) unit.update("operation", current, cancelled(current.object, now));
    unit.create("operation", operation);
    unit.update("managed-service", service, after);
    unit.audit({
      organizationId: object.metadata.organizationId,
      actor: "platform",
      source: "expiry",
      action: "managed-service.delete",
      objectKind: "managed-service",
      objectId: object.metadata.id,
      result: "ok",
      requestId: operation.metadata.id,
    });
  } else if (expiry.action === "warn") {
    const expiryWarnings = [...object.status.expiryWarnings, expiry.hours];
    unit.update("managed-service", service, { ...object, status: { ...object.status, expiryWarnings } });
    const expiresAt = new Date(object.spec.expiresAt ?? now).toISOString();
    unit.event(serviceEvent("service.expiring", object, { expires_at: expiresAt, hours_left: expiry.hours }));
  } else {
    unit.update("managed-service", service, {
      ...object,
      status: { ...object.status, announcedProtectedExpiry: true },
    });
    unit.event(serviceEvent("service.expiry_held", object, { reason: "deletion_protection" }));
  }
  const revision = await unit.commit(signal);
  await deps.services.reached(revision, 1_000);
  return again(0, expiry.action);
}

/** Writes status, operation and announcements in one transaction, and only when something changed. */
async function writeStatus(
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: ManagedServiceReconcilerDeps,
  signal: AbortSignal,
): Promise<void> {
  const before = service.object;
  const now = deps.clock.now();
  const stored = await findOperation(deps.operations, before.status.operationId, signal);
  const { after, operation, events } = advance(before, observed, stored?.object, now, deps.log, {
    clockJumped: deps.clockJumped(),
  });
  const unit = deps.begin();
  if (after.spec.trial?.sealed === true && before.spec.trial?.sealed !== true)
    await holdStill(service, observed, unit, deps);
  const operationChanged =
    stored !== undefined && operation !== undefined && !same(stored.object.status, operation.status);
  if (operationChanged) unit.update("operation", stored, operation);
  if (same(before.status, after.status) && before.spec === after.spec) {
    if (!operationChanged) return;
  } else {
    unit.update("managed-service", service, after);
  }
  for (const event of events) unit.event(event);
  for (const what of ["refused", "refusedGuestKernel"] as const) {
    const refused = after.status.maintenance[what] ?? null;
    if (refused !== null && !same(refused, before.status.maintenance[what]))
      await deps.maintenance.failed(refused.image, before.metadata.id, refused.message, signal);
  }
  await unit.commit(signal);
}

/**
 * What is written of the seal is true of the machines as they were looked at, and of all changes in the engine that were asked
 * for before the image was tried.
 */
async function holdStill(
  { object, modRevision }: Stored<ManagedServiceObject>,
  { nodes }: ObservedService,
  unit: UnitOfWork,
  deps: ManagedServiceReconcilerDeps,
): Promise<void> {
  const { machines } = deps;
  await deps.changes.reached(modRevision, 1_000);
  if (observeService(object, deps).isChanging) throw new Conflict();
  for (const { node, machine } of nodes) {
    const stored = machines.get(node.id);
    if (stored === undefined || stored.object !== machine) throw new Conflict();
    unit.onlyWhile({ key: keyOf("machine", node.id), modRevision: stored.modRevision });
  }
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
