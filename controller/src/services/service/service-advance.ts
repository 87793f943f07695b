import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { admitClients, mayAdmitClients } from "./trial/image-trial.ts";
import { withSeal } from "./trial/trial-seal.ts";
import { completed, failed, isOver, type OperationObject, progressed, stuckFault } from "#operation/operation.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import type { ManagedServiceObject, ManagedServiceStatus } from "./managed-service.ts";
import { rememberHealth } from "./health-change.ts";
import { healthOf, nodeStatusesOf } from "./managed-service-health.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import { managedServiceEvent } from "./managed-service-event.ts";
import { faultOf, isHealthy } from "./managed-service-plan.ts";
import type { ObservedService } from "./observed-service.ts";
import { rememberDiscarded } from "./member/discarded-log.ts";
import { rememberSlots } from "./member/lost-slots.ts";
import { rememberWarnings } from "./member/member-warnings.ts";
import { withSyncStandbys } from "./member/sync-standbys.ts";
import { settleMembers, withFirstReplicas } from "./member/settle-members.ts";
import { withMoved } from "./member/move-node.ts";
import { withTurn } from "./member/turns.ts";
import { progressOf } from "./managed-service-progress.ts";
import type { Fault } from "./procedure/procedure.ts";
import { procedureOf } from "./procedure/procedures.ts";
import { unfinishedOrigin } from "./service-origin.ts";
import { announcementOf, serviceEvent } from "./service-events.ts";
import { rememberStorage } from "../scaling/storage-warning.ts";

/**
 * Pure: the service as it is now, its operation, and what there is to announce. `clockJumped`: a while ago, so that nobody
 * knows for how long nothing moved, and nothing counts as stuck.
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
  const { memory: healthMemory, event: healthEvent } = rememberHealth(after, now);
  after = withSeal(withStatus(after, { healthMemory }), observed);
  if (healthEvent !== undefined) events.push(healthEvent);
  const members = settleMembers(after, observed, now);
  after = members.service;
  events.push(...members.events);
  const { memory: warnings, events: warned } = rememberWarnings(after, observed, now);
  after = withWarnings(after, warnings);
  events.push(...warned);
  const discarded = rememberDiscarded(after, observed);
  if (discarded.memory !== undefined) after = withStatus(after, { discarded: discarded.memory });
  events.push(...discarded.events);
  const slots = rememberSlots(after, observed);
  if (slots.memory !== undefined) after = withStatus(after, { slots: slots.memory });
  events.push(...slots.events);
  const storage = rememberStorage(after, observed);
  if (storage.memory !== undefined) after = withStatus(after, { storage: storage.memory });
  events.push(...storage.events);
  const archiving = after.status.health.checks.find(({ name }) => name === "archiving")?.status;
  if (archiving === "unhealthy" && after.status.restorableStale !== true) {
    after = withStatus(after, { restorableStale: true });
    const point = new Date(observed.newestPoint ?? now).toISOString();
    events.push(serviceEvent("service.restorable_stale", after, { newest_point: point }));
  } else if (archiving === "healthy" && after.status.restorableStale === true)
    after = withStatus(after, { restorableStale: false });
  const procedure = procedureOf(operation);
  let current = operation && moved(before, observed, operation, now, clockJumped);
  const unfit = current && procedure.fault(observed, current, now, after);
  if (current !== undefined && unfit !== undefined) {
    const { type } = current.spec;
    const isRolledBack = procedure.rollBack !== undefined;
    log.warn("operation does not do", { service: before.metadata.id, type, reason: unfit.message, isRolledBack });
    // What is observed is still of the change that was tried.
    if (procedure.rollBack !== undefined)
      return { events, ...procedure.rollBack(after, current, unfit, now, observed) };
    current = failed(current, unfit, now);
  }
  // Written before anybody is admitted, so that whoever decides on the way back knows of it.
  if (after.spec.trial !== undefined && mayAdmitClients(after, observed, current)) {
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
    log.info("service moved", { service: before.metadata.id, from, event: name, to });
    const type = announcementOf(effect);
    if (type !== undefined) events.push(serviceEvent(type, after));
    if (to === "Error" && current !== undefined)
      current = failed(current, error ?? { code: "failed", message: "" }, now);
    if (event === "startRequested") break;
  }
  after = withMoved(withTurn(withSyncStandbys(withFirstReplicas(after), observed), observed), observed);
  const origin = unfinishedOrigin(after.spec);
  if (origin !== undefined && after.status.state === "Running" && isHealthy(after, observed)) {
    after = { ...after, spec: { ...after.spec, origin: { ...origin, finishedAt: now } } };
    const { kind, serviceId, backupId, targetTime } = origin;
    const point = targetTime === null ? {} : { restore_point: new Date(targetTime).toISOString() };
    const told = { kind, source_service_id: serviceId, backup_id: backupId, ...point };
    events.push(serviceEvent("service.restored", after, told));
  }
  if (current !== undefined && current.status.finishedAt === null && procedure.isReached(after, observed, current)) {
    const fault = procedure.rolledBackFault?.(current, after);
    current = fault === undefined ? completed(current, now) : failed(current, fault, now);
  }
  // An operation without progress fails, in any state of the service.
  const runs = after.status.state === "Running";
  const stuck = stuckFault(current, now, { runs });
  if (current !== undefined && current.status.finishedAt === null && stuck !== undefined)
    current = failed(current, (runs && procedure.rolledBackFault?.(current, after)) || stuck, now);
  if (current === undefined || isOver(current)) after = withStatus(after, { operationId: null });
  if (current !== undefined && isOver(current)) {
    const ended = procedure.ended?.(after, current, now);
    if (ended !== undefined) {
      ({ after } = ended);
      events.push(...ended.events);
    }
  }
  return { after, operation: current, events };
}

/** The operation where it is now, with what became known of its work. */
function moved(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  clockJumped: boolean,
): OperationObject {
  const progress = { ...progressOf(service, observed, operation), ...(clockJumped && { waits: true as const }) };
  const after = progressed(operation, progress, now);
  return procedureOf(operation).note?.(after, observed) ?? after;
}

function advised(fault: Fault | undefined, operation: OperationObject | undefined): Fault | null {
  if (fault === undefined) return null;
  const advice = operation && procedureOf(operation).advice?.(operation);
  return advice === undefined ? fault : { ...fault, message: `${fault.message} ${advice}` };
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

function withWarnings(
  service: ManagedServiceObject,
  warnings: NonNullable<ManagedServiceStatus["warnings"]>,
): ManagedServiceObject {
  const { warnings: _, ...status } = service.status;
  return { ...service, status: { ...status, ...(Object.keys(warnings).length > 0 && { warnings }) } };
}

function withStatus(service: ManagedServiceObject, change: Partial<ManagedServiceStatus>): ManagedServiceObject {
  return { ...service, status: { ...service.status, ...change } };
}
