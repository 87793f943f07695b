import { nextMetadata } from "#kernel/store/resource.ts";
import { isOver, type OperationObject, rolledBackError, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import { faultOf } from "../service/managed-service-plan.ts";
import type { ObservedNode, ObservedService } from "../service/observed-service.ts";
import type { Fault } from "../service/procedure/procedure.ts";
import { isBehind, restartsOf } from "../service/member/restarts.ts";
import { turnFault } from "../service/member/turn-fault.ts";
import { isMade, isSized } from "./size-plan.ts";

const minuteMs = 60_000;
/** An engine that does not come up in its new size is given this long: clients wait. */
const engineMayFailForMs = 10_000;
/** A step without progress for so long is given up. */
const stepMs = 5 * minuteMs;

/** Pure: why the service cannot have the new size; undefined while it may, and when that is being rolled back already. */
export function sizeFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  const { resizing } = service.spec;
  if (resizing === undefined || resizing.isRolledBack === true || isOver(operation)) return undefined;
  for (const { machine } of observed.nodes) {
    const problem = machine?.status.sizeProblem ?? "";
    if (machine !== undefined && !isMade(machine) && problem !== "")
      return { code: "machine_failed", message: problem };
  }
  const unfit = turnFault(observed, operation, now, service);
  if (unfit !== undefined) return unfit;
  // A service that was in Error before may recover with the new size, and is no worse off otherwise: its fault rolls
  // nothing back.
  const fault = service.status.state === "Running" ? faultOf(observed, undefined, now, engineMayFailForMs) : undefined;
  if (fault !== undefined) return fault;
  const { deadline, step } = operation.status;
  if (deadline === null || now - (deadline - stuckAfterMs) <= stepMs) return undefined;
  return { code: "not_healthy", message: `Nothing moved for 5 minutes; it was at ${step}.` };
}

/**
 * Pure: the service is to have its old plan again, and its old storage unless a disk has grown already. An engine that was
 * never told of the new plan is not restarted for it.
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
  const wasTold = nodes.some(({ machine }) => machine !== undefined && isMade(machine));
  const { diskBytes } = hasGrown ? resizing.toMachine : resizing.fromMachine;
  const after = {
    ...service,
    metadata: nextMetadata(service.metadata, now),
    spec: {
      ...spec,
      planName,
      ...(!hasGrown && { storageSizeGb }),
      instanceGeneration: spec.instanceGeneration + 1,
      ...(planName !== spec.planName && withRestartsBack(service, nodes, wasTold)),
      resizing: { ...resizing, fromMachine: { ...resizing.fromMachine, diskBytes }, isRolledBack: true as const },
    },
  };
  return { after, operation: rollingBack(operation, fault, now) };
}

/**
 * Nodes that run with the new plan's settings restart with the old ones, one after another where the service has
 * several.
 */
function withRestartsBack({ spec }: ManagedServiceObject, nodes: readonly ObservedNode[], wasTold: boolean) {
  const isRolling = spec.nodes.some(({ restarts }) => restarts !== undefined);
  if (!isRolling) return { restartCount: spec.restartCount + (wasTold ? 1 : -1) };
  const wanted = spec.restartCount + 1;
  const turns = spec.nodes.map((node) => {
    const { told } = restartsOf(spec, node);
    if (isBehind(spec, node)) return { ...node, restarts: { told, wanted: told } };
    const seen = nodes.find((each) => each.node.id === node.id);
    const serves = seen?.connected === true && seen.isCurrent && seen.instance?.state === "running";
    return { ...node, restarts: { told: serves ? told : wanted, wanted } };
  });
  return { restartCount: wanted, nodes: turns };
}

/** Pure: what the operation tells of a size that was rolled back. */
export function sizeRollbackError(operation: OperationObject, service: ManagedServiceObject): Fault | undefined {
  const { planName, storageSizeGb } = service.spec;
  return rolledBackError(operation, `The service has ${planName} and ${storageSizeGb} GB.`);
}

/** Pure: has a service that is off, or was not well before, the size that was asked for? */
export function isSizedAtRest(service: ManagedServiceObject, { nodes }: ObservedService): boolean {
  return service.status.state !== "Running" && nodes.every((node) => isSized(service, node));
}

/** Pure: the service once its change of size is over; the very same object when there is none. */
export function withoutResizing(service: ManagedServiceObject): ManagedServiceObject {
  const { resizing, ...spec } = service.spec;
  if (resizing === undefined) return service;
  return { ...service, spec };
}
