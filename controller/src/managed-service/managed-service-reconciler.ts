import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { findOperation } from "../operation/find-operation.ts";
import { cancelled, completed, failed, type OperationObject, progressed, stuckFault } from "../operation/operation.ts";
import { again, type Outcome, type Reconciler, settled } from "../runtime/reconciler.ts";
import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { NewEvent } from "../outbox/outbox-entry.ts";
import type { ManagedServiceObject, ManagedServiceStatus } from "./managed-service.ts";
import { healthOf, nodeStatusesOf } from "./managed-service-health.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import {
  engineFailedForMs,
  faultOf,
  isHealthy,
  managedServiceEvent,
  type ObservedService,
  planManagedService,
} from "./managed-service-plan.ts";
import { progressOf } from "./managed-service-progress.ts";
import { requestDeletion } from "./service-deletion.ts";
import { announcementOf, serviceEvent } from "./service-events.ts";
import { expiryOf } from "./service-expiry.ts";
import { type ObserverDeps, observeService } from "./service-observer.ts";
import { performServiceStep, type StepDeps } from "./service-steps.ts";

export interface ManagedServiceReconcilerDeps extends StepDeps, ObserverDeps {
  readonly services: Collection<ManagedServiceObject>;
  /** Do deletions by time wait now? */
  readonly held: () => boolean;
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

      const steps = planManagedService(service.object, observeService(service.object, deps));
      for (const step of steps)
        await performServiceStep(step, service, observeService(service.object, deps), deps, signal);
      if (steps.some((step) => step.kind === "forget")) return settled;

      const observed = observeService(service.object, deps);
      await writeStatus(service, observed, deps, signal);
      return lookAgain(service.object, observed, deps);
    },
  };
}

function lookAgain(
  service: ManagedServiceObject,
  observed: ObservedService,
  deps: ManagedServiceReconcilerDeps,
): Outcome {
  const rest = planManagedService(service, observed);
  const [step] = rest;
  if (step !== undefined) return again(step.kind === "converge" ? 2_000 : 50, step.kind);
  if (service.status.operationId !== null) return again(15_000, "operation in progress");
  if (observed.nodes.some(({ instance }) => instance?.state === "failed"))
    return again(engineFailedForMs, "engine failed");
  const expiry = expiryOf(service, deps.clock.now(), deps.held());
  // Timers of Node end at 2^31 ms; a longer wait is split.
  if (expiry.action === "none" && expiry.lookAgainMs !== null)
    return again(Math.min(expiry.lookAgainMs, 86_400_000), "expiry");
  return settled;
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
  const { after, operation, events } = advance(before, observed, stored?.object, now, deps.log);
  const unit = deps.begin();
  const operationChanged =
    stored !== undefined && operation !== undefined && !same(stored.object.status, operation.status);
  if (operationChanged) unit.update("operation", stored, operation);
  if (same(before.status, after.status)) {
    if (!operationChanged) return;
  } else {
    unit.update("managed-service", service, after);
  }
  for (const event of events) unit.event(event);
  await unit.commit(signal);
}

/** Pure: the service as it is now, its operation, and what there is to announce. */
export function advance(
  before: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  log: Log,
): { after: ManagedServiceObject; operation: OperationObject | undefined; events: NewEvent[] } {
  const events: NewEvent[] = [];
  let after: ManagedServiceObject = withStatus(before, {
    health: healthOf(before, observed, now),
    nodes: nodeStatusesOf(before, observed),
    observedGeneration: isHealthy(before, observed) ? before.spec.instanceGeneration : before.status.observedGeneration,
  });
  let current = operation && progressed(operation, progressOf(before, observed), now);
  for (;;) {
    const event = managedServiceEvent(
      after,
      observed,
      current === operation ? operation : withoutProgress(current, operation),
      now,
    );
    const row = event === undefined ? undefined : next(managedServiceLifecycle, after.status.state, event);
    if (row === undefined) break;
    const [from, name, to, effect] = row;
    const error = to === "Error" ? (faultOf(observed, operation, now) ?? null) : null;
    after = withStatus(after, { state: to, error });
    log.info("service moved", { service: before.metadata.id, from, event: name, to });
    const type = announcementOf(effect);
    if (type !== undefined) events.push(serviceEvent(type, after));
    if (to === "Error" && current !== undefined)
      current = failed(current, error ?? { code: "failed", message: "" }, now);
    if (event === "startRequested") break;
  }
  if (current !== undefined && current.status.finishedAt === null && isReached(after, observed, current)) {
    current = completed(current, now);
  }
  // Whatever the states say, no operation lives on without progress.
  const stuck = stuckFault(current, now);
  if (current !== undefined && current.status.finishedAt === null && stuck !== undefined)
    current = failed(current, stuck, now);
  if (current === undefined || current.status.finishedAt !== null) after = withStatus(after, { operationId: null });
  return { after, operation: current, events };
}

/** The life cycle reads an operation's state as it was stored: one that waits has not begun. */
function withoutProgress(
  current: OperationObject | undefined,
  stored: OperationObject | undefined,
): OperationObject | undefined {
  return current === undefined || stored === undefined
    ? stored
    : { ...current, status: { ...current.status, state: stored.status.state } };
}

function isReached(service: ManagedServiceObject, observed: ObservedService, operation: OperationObject): boolean {
  if (operation.spec.type === "delete") return false;
  if (operation.spec.type === "stop") return service.status.state === "Stopped";
  return service.status.state === "Running" && isHealthy(service, observed);
}

function withStatus(service: ManagedServiceObject, change: Partial<ManagedServiceStatus>): ManagedServiceObject {
  return { ...service, status: { ...service.status, ...change } };
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
