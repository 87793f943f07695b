import type { Log } from "@holdfast/common/log.ts";
import { findOperation, operationKind } from "#operation/operation.ts";
import { type MoveDeps, startDueMove } from "../member/due-moves.ts";
import type { AutomaticFailoverDeps } from "../member/primary-replicas/failover/automatic-failover.ts";
import { engineFailureTimeoutMs } from "../canary/image-canary.ts";
import { again, type ReconcileOutcome, type Reconciler, settled } from "#kernel/runtime/reconciler.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { managedServiceKind, type ManagedServiceObject } from "../managed-service.ts";
import { engineFailedForMs } from "./managed-service-plan.ts";
import type { ObservedService, ServiceStep } from "./observed-service.ts";
import { procedureOf } from "../procedure/procedures.ts";
import { advance } from "./service-advance.ts";
import { archivingRecheckInMs } from "../health/archiving-check.ts";
import { warningsRecheckInMs } from "../member/member-warnings.ts";
import { growStorage, type StorageGrowthDeps } from "../../scaling/grow-storage.ts";
import { autoscaleDueInMs } from "../../scaling/autoscale-target.ts";
import { healthRecheckInMs } from "../health/managed-service-health.ts";
import { expiryOf, settleExpiry } from "../service-expiry.ts";
import type { ServiceMaintenance } from "../../maintenance/settle-maintenance.ts";
import { type ObserverDeps, observeService } from "./service-observer.ts";
import { performServiceStep, type StepDeps } from "./service-steps.ts";
import { machineKind } from "#fleet/machine/machine.ts";
import { strategyOf } from "../member/strategies.ts";

export interface ManagedServiceReconcilerDeps extends StepDeps, ObserverDeps {
  readonly hosts: ObserverDeps["hosts"] & StorageGrowthDeps["hosts"] & MoveDeps["hosts"];
  readonly quotas: StorageGrowthDeps["quotas"];
  readonly archives: StorageGrowthDeps["archives"];
  readonly services: Collection<ManagedServiceObject>;
  readonly maintenance: ServiceMaintenance;
  readonly automationPauses: AutomaticFailoverDeps["automationPauses"];
  /** True while deletions by expiry are deferred. */
  readonly expiryDeferred: () => boolean;
  /** True if the wall clock jumped recently. */
  readonly clockJumped: () => boolean;
  readonly newId: () => string;
  readonly log: Log;
}

/**
 * Converges one managed service; the key is its id.
 *
 * A round first handles expiry, maintenance, failover of a silent primary, growth of storage, and moves of nodes off
 * drained hosts. Each of them is a separate transaction, and a commit ends the round. Then it observes the service,
 * plans steps by the procedure of the operation in progress (`../procedure/procedures.ts`), performs them, observes
 * again, and writes status, operation and events in one transaction (`service-advance.ts`). Every step is idempotent;
 * the queue retries. The result is the time of the next round: the earliest that a part requests.
 */
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

      const strategy = strategyOf(service.object);
      const repair = await strategy.repair(service, () => observeService(service.object, deps), deps, signal);
      if (repair !== undefined) return repair;

      const growth = await growStorage(service, () => observeService(service.object, deps), deps, signal);
      if (growth !== undefined) return growth;

      const moves = await startDueMove(service, () => observeService(service.object, deps), deps, signal);
      if (moves.written !== undefined) return moves.written;

      const { operationId } = service.object.status;
      const operation = (await findOperation(deps.operations, operationId, signal))?.object;
      const { plan } = procedureOf(operation);
      const steps = plan(service.object, observeService(service.object, deps), operation);
      for (const step of steps)
        await performServiceStep(step, service, observeService(service.object, deps), deps, signal);
      if (steps.some((step) => step.kind === "forget")) return settled;

      const observed = await strategy.queryMembers(service.object, observeService(service.object, deps), deps, signal);
      const written = await writeStatus(service, observed, deps, signal);
      const healthInMs = healthRecheckInMs(written, deps.clock.now());
      const warningsInMs = warningsRecheckInMs(written, deps.clock.now());
      const archivingInMs = archivingRecheckInMs(service.object, observed, deps.clock.now());
      const [next] = plan(service.object, observed, operation);
      const recheckInMs = [
        maintenance.recheckInMs,
        healthInMs,
        warningsInMs,
        archivingInMs,
        strategy.recheckInMs(written, observed),
        autoscaleDueInMs(written, deps.clock.now()),
        moves.recheckInMs,
      ];
      return recheck(service.object, observed, next, recheckInMs, deps);
    },
  };
}

/** Steps that take seconds, because a machine or another node must act. */
const slowSteps: ReadonlySet<ServiceStep["kind"]> = new Set(["converge", "switchOver"]);

function recheck(
  service: ManagedServiceObject,
  observed: ObservedService,
  step: ServiceStep | undefined,
  recheckInMs: readonly (number | null)[],
  deps: ManagedServiceReconcilerDeps,
): ReconcileOutcome {
  if (step !== undefined)
    return again(slowSteps.has(step.kind) || isAwaitingNewPrimary(service) ? 2_000 : 50, step.kind);
  const hasFailed = observed.nodes.some(({ instance }) => instance?.state === "failed");
  if (service.status.operationId !== null)
    return again(hasFailed ? engineFailureTimeoutMs : 15_000, "operation in progress");
  if (hasFailed) return again(engineFailedForMs, "engine failed");
  const expiry = expiryOf(service, deps.clock.now(), deps.expiryDeferred());
  const timed = [expiry.action === "none" ? expiry.recheckInMs : null, ...recheckInMs].filter((ms) => ms !== null);
  // Node timers are limited to 2^31 ms; a longer delay is split.
  return timed.length === 0 ? settled : again(Math.min(...timed, 86_400_000), "expiry, maintenance or health");
}

/** True while a new primary is promoted or recalled, which takes seconds. Its next report triggers a round earlier. */
function isAwaitingNewPrimary({ spec }: ManagedServiceObject): boolean {
  const { step } = spec.primaryChange ?? {};
  return step === "promote" || step === "recall";
}

/** Writes status, operation and events in one transaction if anything changed. Resolves to the current service. */
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
  if (after.spec.canary?.writesFenced === true && before.spec.canary?.writesFenced !== true)
    await requireFenceHolds(service, observed, unit, deps);
  const operationChanged =
    stored !== undefined && operation !== undefined && !isSame(stored.object.status, operation.status);
  if (operationChanged) unit.update(operationKind, stored, operation);
  if (isSame(before.status, after.status) && before.spec === after.spec) {
    if (!operationChanged) return before;
  } else {
    unit.update(managedServiceKind, service, after);
  }
  for (const event of events) unit.event(event);
  for (const field of ["refused", "refusedGuestKernel"] as const) {
    const refused = after.status.maintenance[field] ?? null;
    if (refused !== null && !isSame(refused, before.status.maintenance[field]))
      await deps.maintenance.failed(refused.image, before.metadata.id, refused.message, signal);
  }
  await unit.commit(signal);
  return after;
}

/**
 * Throws Conflict if a machine differs from its observation, or if a change of users or databases is in progress: the
 * write fence was decided without them. The commit fails if a machine changes later.
 */
async function requireFenceHolds(
  { object, modRevision }: Stored<ManagedServiceObject>,
  { nodes }: ObservedService,
  unit: UnitOfWork,
  deps: ManagedServiceReconcilerDeps,
): Promise<void> {
  const { machines } = deps;
  await deps.changes.untilRevision(modRevision, 1_000);
  if (observeService(object, deps).isChanging) throw new Conflict();
  for (const { node, machine } of nodes) {
    const stored = machines.get(node.id);
    if (stored === undefined || stored.object !== machine) throw new Conflict();
    unit.onlyWhile({ key: keyOf(machineKind, node.id), modRevision: stored.modRevision });
  }
}

function isSame(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}
