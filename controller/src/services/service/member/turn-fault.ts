import { lookUp } from "@holdfast/common/look-up.ts";
import { isOver, type OperationObject, rolledBackError, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../observed-service.ts";
import type { Fault } from "../procedure/procedure.ts";
import { isPrimary } from "./members.ts";
import { isBehind, restartsOf } from "./restarts.ts";
import { keepsOther } from "../trial/other-image.ts";
import { awaitsTurn, hadTurn, unsettledTurns, withoutKept } from "./turns.ts";

const minuteMs = 60_000;
/** A replica whose engine does not come up again is given this long. */
const engineMayFailForMs = 10_000;
/** A turn without progress for so long is given up. */
const turnMs = 5 * minuteMs;

/**
 * Pure: why the nodes that wait for their turn are better left as they are: a replica did not come back from its restart, or did
 * not start with settings that the primary has yet to take. Undefined while they may go on.
 */
export function turnFault(
  observed: ObservedService,
  operation: OperationObject,
  now: number,
  service: ManagedServiceObject,
): Fault | undefined {
  const { spec } = service;
  if (isOver(operation) || operation.status.rollback !== undefined) return undefined;
  if (spec.succession !== undefined || !spec.nodes.some((node) => awaitsTurn(spec, node))) return undefined;
  const unsettled = unsettledTurns(service, observed);
  for (const { node, machine, connected, isCurrent, instance } of unsettled) {
    if (machine?.status.state === "failed")
      return { code: "machine_failed", message: `${node.hostname}: ${machine.status.reason}` };
    const since = Number(instance?.since?.seconds ?? 0n) * 1_000;
    if (connected && isCurrent && instance?.state === "failed" && now - since >= engineMayFailForMs)
      return { code: "engine_failed", message: `${node.hostname}: ${instance.reason}` };
  }
  const rejected = rejection(service, observed);
  if (rejected !== undefined) return rejected;
  const { deadline, step } = operation.status;
  if (deadline === null || now - (deadline - stuckAfterMs) <= turnMs) return undefined;
  const names = unsettled.map(({ node }) => node.hostname).join(", ");
  const what = names === "" ? "Nothing moved for 5 minutes" : `${names} did not come back within 5 minutes`;
  return { code: "not_healthy", message: `${what}; it was at ${step}.` };
}

/** What a replica would not start with, the primary would not either. */
function rejection(service: ManagedServiceObject, { nodes }: ObservedService): Fault | undefined {
  const primary = nodes.find(({ node }) => isPrimary(service, node));
  for (const { node, instance } of nodes.filter((seen) => isBack(service, seen))) {
    for (const [name, reason] of Object.entries(instance?.rejectedParameters ?? {}))
      if (lookUp(primary?.instance?.rejectedParameters ?? {}, name) === undefined)
        return { code: "parameter_rejected", message: `${node.hostname} did not start with ${name}: ${reason}` };
  }
  return undefined;
}

function isBack(service: ManagedServiceObject, { node, connected, isCurrent, instance }: ObservedNode): boolean {
  if (isPrimary(service, node) || !hadTurn(service, node) || !connected || !isCurrent) return false;
  return Number(instance?.restartCount ?? 0n) >= restartsOf(service.spec, node).told;
}

/** Pure: whoever waits for its turn stays as it is, and the operation tells why. */
export function endTurns(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec } = service;
  const nodes = spec.nodes.map((each) => {
    const { told } = restartsOf(spec, each);
    const node = withoutKept(each);
    return isBehind(spec, node) ? { ...node, restarts: { told, wanted: told } } : node;
  });
  // Machines that were started already have had one more than is asked for then.
  const waiting = spec.nodes.find((node) => keepsOther(spec, node));
  const started = waiting && { machineStarts: waiting.keeps?.machineStarts ?? 0 };
  return {
    after: { ...service, metadata: nextMetadata(metadata, now), spec: { ...spec, nodes, ...started } },
    operation: rollingBack(operation, fault, now),
  };
}

/** Pure: what an operation tells whose turns ended early. */
export function endedTurnsError(operation: OperationObject): Fault | undefined {
  return rolledBackError(operation, "The other nodes run as before.");
}
