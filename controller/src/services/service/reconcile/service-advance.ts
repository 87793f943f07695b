import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { admitClients, canAdmitClients } from "../canary/image-canary.ts";
import { withWriteFence } from "../canary/write-fence.ts";
import { completed, failed, isFinished, type OperationObject, progressed, warned } from "#operation/operation.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, ManagedServiceStatus } from "../managed-service.ts";
import { healthTransition } from "../health/managed-service-health.ts";
import { healthOf, nodeStatusesOf } from "../health/managed-service-health.ts";
import { managedServiceLifecycle } from "../managed-service-lifecycle.ts";
import { managedServiceEvent } from "./managed-service-event.ts";
import { faultOf, isHealthy } from "./managed-service-plan.ts";
import type { ObservedService } from "./observed-service.ts";
import { warningTransitions } from "../member/member-warnings.ts";
import { plannedWorkOf } from "../member/planned-work.ts";
import { withCompletedMoves } from "../member/move-node.ts";
import { restartsOf } from "../member/restarts.ts";
import { progressOf } from "./managed-service-progress.ts";
import type { Fault } from "../procedure/procedure.ts";
import { procedureOf } from "../procedure/procedures.ts";
import { unfinishedOrigin } from "../service-origin.ts";
import { announcementOf, serviceEvent } from "../service-events.ts";
import { storageTransition } from "../../scaling/storage-warning.ts";
import { stuckFault } from "../service-operations.ts";
import { strategyOf } from "../member/strategies.ts";

/**
 * Computes the status of the service, its operation, and the events to emit, from an observation. `clockJumped`: the
 * wall clock jumped recently, so durations are unknown and no operation counts as stuck.
 */
export function advance(
  before: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
  now: number,
  log: Log,
  { clockJumped = false }: { readonly clockJumped?: boolean } = {},
): { after: ManagedServiceObject; operation: OperationObject | undefined; events: NewEvent[] } {
  const events: NewEvent[] = [];
  let after: ManagedServiceObject = withStatus(before, {
    health: healthOf(before, observed, now),
    nodes: nodeStatusesOf(before, observed),
    observedGeneration: isHealthy(before, observed) ? before.spec.instanceGeneration : before.status.observedGeneration,
  });
  after = withPlannedWork(after, plannedWorkOf(after, observed, operation, now));
  const { record: healthMemory, event: healthEvent } = healthTransition(after, now);
  after = withWriteFence(withStatus(after, { healthMemory }), observed);
  if (healthEvent !== undefined) events.push(healthEvent);
  const members = strategyOf(after).updateStatus(after, observed, now);
  after = members.service;
  events.push(...members.events);
  const { record: warnings, events: warned } = warningTransitions(after, observed, now);
  after = withWarnings(after, warnings);
  events.push(...warned);
  const storage = storageTransition(after, observed);
  if (storage.record !== undefined) after = withStatus(after, { storage: storage.record });
  events.push(...storage.events);
  const archiving = after.status.health.checks.find(({ name }) => name === "archiving")?.status;
  if (archiving === "unhealthy" && after.status.recoveryPointStale !== true) {
    after = withStatus(after, { recoveryPointStale: true });
    const point = new Date(observed.newestRecoveryPoint ?? now).toISOString();
    events.push(serviceEvent("service.recovery_point_stale", after, { newest_point: point }));
  } else if (archiving === "healthy" && after.status.recoveryPointStale === true)
    after = withStatus(after, { recoveryPointStale: false });
  const procedure = procedureOf(operation);
  let current = operation && withStep(before, observed, operation, now, clockJumped);
  const operationFault = current && procedure.fault(observed, current, now, after);
  if (current !== undefined && operationFault !== undefined) {
    const { type } = current.spec;
    const isRolledBack = procedure.rollBack !== undefined;
    log.warn("operation failed", {
      service: before.metadata.id,
      type,
      reason: operationFault.message,
      isRolledBack,
    });
    // The observation still describes the failed change, so nothing else is derived from it.
    if (procedure.rollBack !== undefined)
      return { events, ...procedure.rollBack(after, current, operationFault, now, observed) };
    current = failed(current, operationFault, now);
  }
  // Recorded before a client is admitted, so that a later rollback retains the clients' writes.
  if (after.spec.canary !== undefined && canAdmitClients(after, observed, current)) {
    log.info("clients admitted", { service: before.metadata.id, image: after.spec.image });
    return { after: admitClients(after, now), operation: current, events };
  }
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
    const error = to === "Error" ? advised(faultOf(observed, operation, now), current) : null;
    after = withStatus(after, { state: to, error });
    log.info("service state changed", { service: before.metadata.id, from, event: name, to });
    const type = announcementOf(effect);
    if (type !== undefined) events.push(serviceEvent(type, after));
    if (to === "Error" && current !== undefined)
      current = failed(current, error ?? { code: "failed", message: "" }, now);
    if (event === "startRequested") break;
  }
  after = withCompletedMoves(strategyOf(after).advance(after, observed), observed);
  const origin = unfinishedOrigin(after.spec);
  if (origin !== undefined && after.status.state === "Running" && isHealthy(after, observed)) {
    after = { ...after, spec: { ...after.spec, origin: { ...origin, finishedAt: now } } };
    const { kind, serviceId, backupId, targetTime } = origin;
    const point = targetTime === null ? {} : { restore_point: new Date(targetTime).toISOString() };
    const data = { kind, source_service_id: serviceId, backup_id: backupId, ...point };
    events.push(serviceEvent("service.restored", after, data));
  }
  if (current !== undefined && current.status.finishedAt === null && procedure.isComplete(after, observed, current)) {
    const fault = procedure.rolledBackFault?.(current, after);
    current = fault === undefined ? completed(current, now) : failed(current, fault, now);
  }
  // An operation without progress fails in any state of the service.
  const runs = after.status.state === "Running";
  const stuck = stuckFault(current, now, { runs });
  if (current !== undefined && current.status.finishedAt === null && stuck !== undefined)
    current = failed(current, (runs && procedure.rolledBackFault?.(current, after)) || stuck, now);
  if (current === undefined || isFinished(current)) after = withStatus(after, { operationId: null });
  if (current !== undefined && isFinished(current)) {
    const ended = procedure.onEnd?.(after, current, now);
    if (ended !== undefined) {
      ({ after } = ended);
      events.push(...ended.events);
    }
  }
  return { after, operation: current, events };
}

/** The operation with its current step and the results so far. */
function withStep(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  clockJumped: boolean,
): OperationObject {
  const progress = { ...progressOf(service, observed, operation), ...(clockJumped && { waits: true as const }) };
  const after = warned(progressed(operation, progress, now), rejectionWarnings(service, observed));
  return procedureOf(operation).recordResults?.(after, observed) ?? after;
}

/** Warnings about parameters that a started engine rejected. The operation succeeds without their new values. */
function rejectionWarnings({ spec }: ManagedServiceObject, { nodes }: ObservedService): string[] {
  return nodes.flatMap(({ node, connected, isCurrent, instance }) => {
    const hasStarted = connected && isCurrent && instance?.state === "running";
    if (!hasStarted || Number(instance.restartCount) < restartsOf(spec, node).delivered) return [];
    return Object.entries(instance.rejectedParameters).map(
      ([name, reason]) =>
        `${node.hostname} runs with the last accepted value of ${name}, not with the new one: ${reason}`,
    );
  });
}

function advised(fault: Fault | undefined, operation: OperationObject | undefined): Fault | null {
  if (fault === undefined) return null;
  const advice = operation && procedureOf(operation).advice?.(operation);
  return advice === undefined ? fault : { ...fault, message: `${fault.message} ${advice}` };
}

/** The operation with its stored state and progress, for the life cycle: a pending operation has not started. */
function withoutProgress(
  current: OperationObject | undefined,
  stored: OperationObject | undefined,
): OperationObject | undefined {
  return current === undefined || stored === undefined
    ? stored
    : { ...current, status: { ...current.status, state: stored.status.state } };
}

function withWarnings(
  service: ManagedServiceObject,
  warnings: NonNullable<ManagedServiceStatus["warnings"]>,
): ManagedServiceObject {
  const { warnings: _, ...status } = service.status;
  return { ...service, status: { ...status, ...(Object.keys(warnings).length > 0 && { warnings }) } };
}

function withPlannedWork(
  service: ManagedServiceObject,
  plannedWork: ManagedServiceStatus["plannedWork"] | undefined,
): ManagedServiceObject {
  const { plannedWork: _, ...status } = service.status;
  return { ...service, status: { ...status, ...(plannedWork !== undefined && { plannedWork }) } };
}

function withStatus(service: ManagedServiceObject, change: Partial<ManagedServiceStatus>): ManagedServiceObject {
  return { ...service, status: { ...service.status, ...change } };
}
