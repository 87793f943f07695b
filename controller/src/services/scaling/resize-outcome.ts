import { nextMetadata } from "#kernel/store/resource.ts";
import { isFinished, type OperationObject, rolledBackError, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { faultOf } from "../service/reconcile/managed-service-plan.ts";
import type { ObservedNode, ObservedService } from "../service/reconcile/observed-service.ts";
import type { Fault } from "../service/procedure/procedure.ts";
import { awaitsRestart, restartsOf } from "../service/member/restarts.ts";
import { rolloutFault } from "../service/member/rollout-fault.ts";
import { hasRequestedSize, isSized } from "./size-plan.ts";
import type { NewEvent } from "#kernel/store/outbox-entry.ts";
import { sizeChangeOf } from "./service-size.ts";
import { serviceEvent } from "../service/service-events.ts";

const minuteMs = 60_000;
/** Maximum time until an engine runs in its new size, while clients wait. */
const engineFailureGraceMs = 10_000;
/** Time without progress after which a step fails. */
const stalledAfterMs = 5 * minuteMs;

/** Reason why the change of size fails; undefined while it may succeed, and during a rollback. */
export function sizeFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  const { resizing } = service.spec;
  if (resizing === undefined || resizing.isRolledBack === true || isFinished(operation)) return undefined;
  for (const { machine } of observed.nodes) {
    const problem = machine?.status.sizeProblem ?? "";
    if (machine !== undefined && !hasRequestedSize(machine) && problem !== "")
      return { code: "machine_failed", message: problem };
  }
  const rollout = rolloutFault(observed, operation, now, service);
  if (rollout !== undefined) return rollout;
  // The fault of a service that was already in Error is not a reason for a rollback: the new size may repair it.
  const fault =
    service.status.state === "Running" ? faultOf(observed, undefined, now, engineFailureGraceMs) : undefined;
  if (fault !== undefined) return fault;
  const { deadline, step } = operation.status;
  if (deadline === null || now - (deadline - stuckAfterMs) <= stalledAfterMs) return undefined;
  return { code: "not_healthy", message: `No progress for 5 minutes in step ${step}.` };
}

/**
 * Rolls a resize back: the service gets its old plan, and its old storage unless a disk has already grown. An engine
 * that never got the new plan does not restart.
 */
export function rollBackSize(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
  { nodes }: ObservedService,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { resizing, ...spec } = service.spec;
  if (resizing === undefined) return { after: service, operation };
  const { planName, storageSizeGb } = resizing.from;
  const hasGrown = nodes.some(({ machine }) => (machine?.status.size?.diskBytes ?? 0) > resizing.fromMachine.diskBytes);
  const wasDelivered = nodes.some(({ machine }) => machine !== undefined && hasRequestedSize(machine));
  const { diskBytes } = hasGrown ? resizing.toMachine : resizing.fromMachine;
  const after = {
    ...service,
    metadata: nextMetadata(service.metadata, now),
    spec: {
      ...spec,
      planName,
      ...(!hasGrown && { storageSizeGb }),
      instanceGeneration: spec.instanceGeneration + 1,
      ...(planName !== spec.planName && withRollbackRestarts(service, nodes, wasDelivered)),
      resizing: { ...resizing, fromMachine: { ...resizing.fromMachine, diskBytes }, isRolledBack: true as const },
    },
  };
  return { after, operation: rollingBack(operation, fault, now) };
}

/**
 * Restarts with the old plan's settings for the nodes that run with the new plan's, by a rolling update if the service
 * has several nodes.
 */
function withRollbackRestarts({ spec }: ManagedServiceObject, nodes: readonly ObservedNode[], wasDelivered: boolean) {
  const isRolling = spec.nodes.some(({ restarts }) => restarts !== undefined);
  if (!isRolling) return { restartCount: spec.restartCount + (wasDelivered ? 1 : -1) };
  const desired = spec.restartCount + 1;
  const members = spec.nodes.map((node) => {
    const { delivered } = restartsOf(spec, node);
    if (awaitsRestart(spec, node)) return { ...node, restarts: { delivered, desired: delivered } };
    const seen = nodes.find((each) => each.node.id === node.id);
    const serves = seen?.connected === true && seen.isCurrent && seen.instance?.state === "running";
    return { ...node, restarts: { delivered: serves ? delivered : desired, desired } };
  });
  return { restartCount: desired, nodes: members };
}

/** Error of a resize operation that was rolled back. */
export function sizeRollbackError(operation: OperationObject, service: ManagedServiceObject): Fault | undefined {
  const { planName, storageSizeGb } = service.spec;
  return rolledBackError(operation, `The service has ${planName} and ${storageSizeGb} GB.`);
}

/** True if the machines of a service that need not be healthy (stopped, or in Error before) have the requested size. */
export function isSizedAtRest(service: ManagedServiceObject, { nodes }: ObservedService): boolean {
  return service.status.state !== "Running" && nodes.every((node) => isSized(service, node));
}

/** The service after its change of size; the same object if no change is in progress. */
export function withoutResizing(service: ManagedServiceObject): ManagedServiceObject {
  const { resizing, ...spec } = service.spec;
  if (resizing === undefined) return service;
  return { ...service, spec };
}

/** The event of a completed resize; undefined if it was rolled back, and for other operations. */
export function resizedEvent(service: ManagedServiceObject, operation: OperationObject): NewEvent | undefined {
  const size = sizeChangeOf(operation);
  if (size === undefined || operation.status.state !== "completed") return undefined;
  return serviceEvent("service.resized", service, {
    operation_id: operation.metadata.id,
    plan_name: size.to.planName,
    storage_size_gb: size.to.storageSizeGb,
    from_plan_name: size.from.planName,
    from_storage_size_gb: size.from.storageSizeGb,
  });
}
