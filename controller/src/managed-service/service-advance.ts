import type { Log } from "@holdfast/common/log.ts";
import { next } from "@holdfast/common/machine.ts";
import { letIn, memoryAfter, takeBack, takenBackError, trialFault, withSnapshot } from "./trial/image-trial.ts";
import { endedEvent } from "./maintenance-events.ts";
import { withSeal } from "./trial/trial-seal.ts";
import { adviceOf } from "./trial/way-back.ts";
import {
  completed,
  failed,
  isOver,
  type OperationObject,
  progressed,
  replacementOf,
  stuckFault,
} from "../operation/operation.ts";
import type { NewEvent } from "../store/outbox-entry.ts";
import type { ManagedServiceObject, ManagedServiceStatus } from "./managed-service.ts";
import { healthOf, nodeStatusesOf } from "./managed-service-health.ts";
import { managedServiceLifecycle } from "./managed-service-lifecycle.ts";
import {
  faultOf,
  isHealthy,
  isWellUnderImage,
  managedServiceEvent,
  type ObservedService,
} from "./managed-service-plan.ts";
import { progressOf } from "./managed-service-progress.ts";
import { announcementOf, serviceEvent } from "./service-events.ts";

type Fault = { readonly code: string; readonly message: string };

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
  after = withSeal(after, observed);
  const progress = { ...progressOf(before, observed, operation), ...(clockJumped && { waits: true as const }) };
  let current = operation && withSnapshot(progressed(operation, progress, now), observed);
  const unfit = trialFault(observed, current, now);
  if (current !== undefined && unfit !== undefined) {
    ({ after, operation: current } = takeBack(after, current, unfit, now));
    const { image, guestKernel } = before.spec;
    log.warn("image taken back", { service: before.metadata.id, image, guestKernel, reason: unfit.message });
    // The old image is under nothing yet: what is observed is still of the one that was tried.
    return { after, operation: current, events };
  }
  // Written before anybody is let in, so that whoever decides on the way back knows of it.
  if (after.spec.trial !== undefined && mayLetIn(after, observed, current)) {
    log.info("clients let in", { service: before.metadata.id, image: after.spec.image });
    return { after: letIn(after, now), operation: current, events };
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
  if (current !== undefined && current.status.finishedAt === null && isReached(after, observed, current)) {
    const fault = takenBackError(current);
    current = fault === undefined ? completed(current, now) : failed(current, fault, now);
  }
  // Whatever the states say, no operation lives on without progress.
  const stuck = stuckFault(current, now);
  if (current !== undefined && current.status.finishedAt === null && stuck !== undefined)
    current = failed(current, stuck, now);
  if (current === undefined || isOver(current)) after = withStatus(after, { operationId: null });
  if (current !== undefined && isOver(current)) {
    after = withStatus(after, { maintenance: memoryAfter(current, after.status.maintenance, now) });
    const ended = endedEvent(after, current);
    if (ended !== undefined) events.push(ended);
  }
  return { after, operation: current, events };
}

/** While an image is tried, once it is well; afterwards nobody has a reason to keep clients out. */
function mayLetIn(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject | undefined,
): boolean {
  if (service.metadata.deletionRequestedAt !== undefined) return false;
  return replacementOf(operation) === undefined || isWellUnderImage(service, observed, operation);
}

function advised(fault: Fault | undefined, operation: OperationObject | undefined): Fault | null {
  if (fault === undefined) return null;
  const isBack = replacementOf(operation) !== undefined && operation?.status.takenBack !== undefined;
  return isBack ? { ...fault, message: `${fault.message} ${adviceOf(operation.status.snapshot)}` } : fault;
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
