import type { Log } from "@holdfast/common/log.ts";
import { findOperation } from "#operation/find-operation.ts";
import { withProvenReplicas } from "./member/proven-replicas.ts";
import { awayDueInMs } from "./member/settle-members.ts";
import { type MoveDeps, settleMoves } from "./member/settle-moves.ts";
import { type AutomaticFailoverDeps, settlePrimary } from "./member/automatic-failover.ts";
import { engineMayFailForMs } from "./trial/image-trial.ts";
import { cancelled, operationKind } from "#operation/operation.ts";
import { again, type Outcome, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject } from "./managed-service.ts";
import { engineFailedForMs } from "./managed-service-plan.ts";
import type { ObservedService, ServiceStep } from "./observed-service.ts";
import { procedureOf } from "./procedure/procedures.ts";
import { advance } from "./service-advance.ts";
import { archivingDueInMs } from "./archiving-check.ts";
import { warningsDueInMs } from "./member/member-warnings.ts";
import { growStorage, type StorageGrowthDeps } from "../scaling/grow-storage.ts";
import { autoscaleDueInMs } from "../scaling/autoscale-target.ts";
import { healthDueInMs } from "./health-change.ts";
import { requestDeletion } from "./service-deletion.ts";
import { serviceEvent } from "./service-events.ts";
import { expiryOf } from "./service-expiry.ts";
import type { ServiceMaintenance } from "./service-maintenance.ts";
import { type ObserverDeps, observeService } from "./service-observer.ts";
import { performServiceStep, type StepDeps } from "./service-steps.ts";
import { machineKind } from "#fleet/machine/machine.ts";

export interface ManagedServiceReconcilerDeps extends StepDeps, ObserverDeps {
  readonly hosts: ObserverDeps["hosts"] & StorageGrowthDeps["hosts"] & MoveDeps["hosts"];
  readonly quotas: StorageGrowthDeps["quotas"];
  readonly services: Collection<ManagedServiceObject>;
  readonly maintenance: ServiceMaintenance;
  readonly holds: AutomaticFailoverDeps["holds"];
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

      const failover = await settlePrimary(service, () => observeService(service.object, deps), deps, signal);
      if (failover !== undefined) return failover;

      const growth = await growStorage(service, () => observeService(service.object, deps), deps, signal);
      if (growth !== undefined) return growth;

      const moves = await settleMoves(service, () => observeService(service.object, deps), deps, signal);
      if (moves.written !== undefined) return moves.written;

      const { operationId } = service.object.status;
      const operation = (await findOperation(deps.operations, operationId, signal))?.object;
      const { plan } = procedureOf(operation);
      const steps = plan(service.object, observeService(service.object, deps), operation);
      for (const step of steps)
        await performServiceStep(step, service, observeService(service.object, deps), deps, signal);
      if (steps.some((step) => step.kind === "forget")) return settled;

      const observed = await withProvenReplicas(service.object, observeService(service.object, deps), deps, signal);
      const written = await writeStatus(service, observed, deps, signal);
      const healthInMs = healthDueInMs(written, deps.clock.now());
      const warningsInMs = warningsDueInMs(written, deps.clock.now());
      const archivingInMs = archivingDueInMs(service.object, observed, deps.clock.now());
      const [next] = plan(service.object, observed, operation);
      const dueInMs = [
        maintenance.lookAgainMs,
        healthInMs,
        warningsInMs,
        archivingInMs,
        awayDueInMs(written, observed),
        autoscaleDueInMs(written, deps.clock.now()),
        moves.lookAgainMs,
      ];
      return lookAgain(service.object, observed, next, dueInMs, deps);
    },
  };
}

/** What a machine is at, or what others have to become ready for. */
const takesTime: ReadonlySet<ServiceStep["kind"]> = new Set(["converge", "switchOver"]);

function lookAgain(
  service: ManagedServiceObject,
  observed: ObservedService,
  step: ServiceStep | undefined,
  dueInMs: readonly (number | null)[],
  deps: ManagedServiceReconcilerDeps,
): Outcome {
  if (step !== undefined) return again(takesTime.has(step.kind) || isNaming(service) ? 2_000 : 50, step.kind);
  const hasFailed = observed.nodes.some(({ instance }) => instance?.state === "failed");
  if (service.status.operationId !== null)
    return again(hasFailed ? engineMayFailForMs : 15_000, "operation in progress");
  if (hasFailed) return again(engineFailedForMs, "engine failed");
  const expiry = expiryOf(service, deps.clock.now(), deps.held());
  const timed = [expiry.action === "none" ? expiry.lookAgainMs : null, ...dueInMs].filter((ms) => ms !== null);
  // Timers of Node end at 2^31 ms; a longer wait is split.
  return timed.length === 0 ? settled : again(Math.min(...timed, 86_400_000), "expiry, maintenance or health");
}

/** A primary that was named, or recalled, takes its time, and wakes the service when it tells something. */
function isNaming({ spec }: ManagedServiceObject): boolean {
  const { step } = spec.succession ?? {};
  return step === "promote" || step === "recall";
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
    const { after, operation } = requestDeletion(object, { operationId: deps.newId(), now });
    const current = await findOperation(deps.operations, object.status.operationId, signal);
    if (current !== undefined) unit.update(operationKind, current, cancelled(current.object, now));
    unit.create(operationKind, operation);
    unit.update(managedServiceKind, service, after);
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
    unit.update(managedServiceKind, service, { ...object, status: { ...object.status, expiryWarnings } });
    const expiresAt = new Date(object.spec.expiresAt ?? now).toISOString();
    unit.event(serviceEvent("service.expiring", object, { expires_at: expiresAt, hours_left: expiry.hours }));
  } else {
    unit.update(managedServiceKind, service, {
      ...object,
      status: { ...object.status, announcedProtectedExpiry: true },
    });
    unit.event(serviceEvent("service.expiry_held", object, { reason: "deletion_protection" }));
  }
  const revision = await unit.commit(signal);
  await deps.services.reached(revision, 1_000);
  return again(0, expiry.action);
}

/** Writes status, operation and announcements in one transaction, and only when something changed. Resolves to what is. */
async function writeStatus(
  service: Stored<ManagedServiceObject>,
  observed: ObservedService,
  deps: ManagedServiceReconcilerDeps,
  signal: AbortSignal,
): Promise<ManagedServiceObject> {
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
  if (operationChanged) unit.update(operationKind, stored, operation);
  if (same(before.status, after.status) && before.spec === after.spec) {
    if (!operationChanged) return before;
  } else {
    unit.update(managedServiceKind, service, after);
  }
  for (const event of events) unit.event(event);
  for (const what of ["refused", "refusedGuestKernel"] as const) {
    const refused = after.status.maintenance[what] ?? null;
    if (refused !== null && !same(refused, before.status.maintenance[what]))
      await deps.maintenance.failed(refused.image, before.metadata.id, refused.message, signal);
  }
  await unit.commit(signal);
  return after;
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
    unit.onlyWhile({ key: keyOf(machineKind, node.id), modRevision: stored.modRevision });
  }
}

function same(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
