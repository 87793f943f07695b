import { lookUp } from "@holdfast/common/look-up.ts";
import { isFinished, type OperationObject, rolledBackError, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import type { Fault } from "../procedure/procedure.ts";
import { awaitsRestart, restartsOf } from "./restarts.ts";
import { isPinned } from "../canary/node-image.ts";
import { awaitsRollout, isRolledOut, unsettledInRollout, withoutPin } from "./rollout-state.ts";
import { isLeader } from "./member-roles.ts";

const minuteMs = 60_000;
/** Maximum time until the engine of an updated replica runs. */
const engineStartTimeoutMs = 10_000;
/** Time without progress after which the update of a node has failed. */
const stepTimeoutMs = 5 * minuteMs;

/**
 * The reason to abort a rolling update: an updated replica did not start again, or rejected settings that the primary
 * does not have yet. Undefined while the update may continue.
 */
export function rolloutFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  const { spec } = service;
  if (isFinished(operation) || operation.status.rollback !== undefined) return undefined;
  if (spec.primaryChange !== undefined || !spec.nodes.some((node) => awaitsRollout(spec, node))) return undefined;
  const unsettled = unsettledInRollout(service, observed);
  for (const { node, machine, connected, isCurrent, instance } of unsettled) {
    if (machine?.status.state === "failed")
      return { code: "machine_failed", message: `${node.hostname}: ${machine.status.reason}` };
    const since = Number(instance?.since?.seconds ?? 0n) * 1_000;
    if (connected && isCurrent && instance?.state === "failed" && now - since >= engineStartTimeoutMs)
      return { code: "engine_failed", message: `${node.hostname}: ${instance.reason}` };
  }
  const rejected = rejection(service, observed);
  if (rejected !== undefined) return rejected;
  const { deadline, step } = operation.status;
  if (deadline === null || now - (deadline - stuckAfterMs) <= stepTimeoutMs) return undefined;
  const names = unsettled.map(({ node }) => node.hostname).join(", ");
  const what = names === "" ? "There was no progress for 5 minutes" : `${names} did not start again within 5 minutes`;
  return { code: "not_healthy", message: `${what}, at step ${step}.` };
}

/** The fault of a parameter that a replica rejected: the primary would reject it too. */
function rejection(service: ManagedServiceObject, { nodes }: ObservedService): Fault | undefined {
  const primary = nodes.find(({ node }) => isLeader(service, node));
  for (const { node, instance } of nodes.filter((seen) => hasRestarted(service, seen))) {
    for (const [name, reason] of Object.entries(instance?.rejectedParameters ?? {}))
      if (lookUp(primary?.instance?.rejectedParameters ?? {}, name) === undefined)
        return { code: "parameter_rejected", message: `${node.hostname} did not start with ${name}: ${reason}` };
  }
  return undefined;
}

function hasRestarted(service: ManagedServiceObject, { node, connected, isCurrent, instance }: ObservedNode): boolean {
  if (isLeader(service, node) || !isRolledOut(service, node) || !connected || !isCurrent) return false;
  return Number(instance?.restartCount ?? 0n) >= restartsOf(service.spec, node).delivered;
}

/** Aborts the rolling update: the waiting nodes are not changed, and the operation records the reason. */
export function abortRollout(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec } = service;
  const nodes = spec.nodes.map((each) => {
    const { delivered } = restartsOf(spec, each);
    const node = withoutPin(each);
    return awaitsRestart(spec, node) ? { ...node, restarts: { delivered, desired: delivered } } : node;
  });
  // Machines that started already then have one more start than the service requests.
  const waiting = spec.nodes.find((node) => isPinned(spec, node));
  const started = waiting && { machineStarts: waiting.pinned?.machineStarts ?? 0 };
  return {
    after: { ...service, metadata: nextMetadata(metadata, now), spec: { ...spec, nodes, ...started } },
    operation: rollingBack(operation, fault, now),
  };
}

/** The error of an operation whose rolling update was aborted. */
export function abortedRolloutError(operation: OperationObject): Fault | undefined {
  return rolledBackError(operation, "The other nodes run as before.");
}
