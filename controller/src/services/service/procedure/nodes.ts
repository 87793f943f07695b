import { type OperationObject, rolledBackError, stuckFault, warned, workOf } from "#operation/operation.ts";
import type { ManagedServiceObject } from "../managed-service.ts";
import { moveFault, rollBackMove } from "../member/move-node.ts";
import type { ObservedService } from "../observed-service.ts";
import { holdToSpec } from "./hold-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { successionProgress } from "./succession-progress.ts";

/** A service is made once all its replicas follow, too; clients are served as soon as its primary is there. */
export const creation: Procedure = {
  ...holdToSpec,
  progress: creationProgress,
  isReached: (service, observed, operation) =>
    service.spec.nodes.every(({ joining }) => joining === undefined) &&
    holdToSpec.isReached(service, observed, operation),
  fault(observed, operation, now, { status }) {
    if (status.state !== "Running") return undefined;
    const advice = "The primary serves: remove the node that does not follow it, and add another one.";
    const lost = observed.nodes.find(({ node, machine }) => node.joining && machine?.status.state === "failed");
    if (lost !== undefined) return { code: "machine_failed", message: `${lost.machine?.status.reason} ${advice}` };
    const isStuck = stuckFault(operation, now) !== undefined;
    return isStuck ? { code: "stuck", message: `No progress for 10 minutes. ${advice}` } : undefined;
  },
  note: (operation, { nodes }) =>
    warned(
      operation,
      nodes.flatMap(({ instance }) => instance?.restore?.warnings ?? []),
    ),
};

/** A replica comes: it is there once it receives what the primary writes, and has its name. */
export const addNode: Procedure = {
  ...holdToSpec,
  progress: addProgress,
  isReached: (service, observed, operation) =>
    nodeOf(service, operation)?.joining === undefined && holdToSpec.isReached(service, observed, operation),
  fault(observed, operation) {
    const machine = memberOf(observed, operation)?.machine;
    if (machine?.status.state !== "failed") return undefined;
    return { code: "machine_failed", message: `${machine.status.reason} Remove the node, and add another one.` };
  },
};

/** A replica goes with its machine, and the primary keeps nothing for it any more. */
export const removeNode: Procedure = {
  ...holdToSpec,
  progress: () => ({ step: "RemoveServer", progressPct: 50 }),
  isReached: (service, observed, operation) =>
    nodeOf(service, operation) === undefined && holdToSpec.isReached(service, observed, operation),
};

/** A member is added elsewhere, becomes the primary where that one leaves, and the one on the host that is left goes. */
export const moveNode: Procedure = {
  ...holdToSpec,
  progress(service, observed, operation) {
    const { succession } = service.spec;
    if (operation.status.rollback !== undefined) return { step: "RemoveServer", progressPct: 90 };
    if (nodeOf(service, operation)?.joining === true) return addProgress(service, observed, operation);
    if (succession !== undefined) return { ...successionProgress(succession, observed), progressPct: 90 };
    return hasOld(service, operation)
      ? { step: "SwitchOver", progressPct: 85 }
      : { step: "RemoveServer", progressPct: 95 };
  },
  isReached: (service, observed, operation) =>
    (operation.status.rollback === undefined
      ? !hasOld(service, operation) && nodeOf(service, operation)?.joining === undefined
      : nodeOf(service, operation)?.leaving === undefined) && holdToSpec.isReached(service, observed, operation),
  fault: (observed, operation, now, service) => moveFault(service, observed, operation, targetOf(operation) ?? "", now),
  rollBack: (service, operation, fault, now) => rollBackMove(service, operation, fault, targetOf(operation) ?? "", now),
  rolledBackFault: (operation) => rolledBackError(operation, "The node stays where it is for now."),
};

/** The primary gives way to a replica that was chosen. */
export const failover: Procedure = {
  ...holdToSpec,
  progress: failoverProgress,
  isReached: (service, observed, operation) =>
    hasTarget(service, operation) && holdToSpec.isReached(service, observed, operation),
  fault(_observed, operation, _now, service) {
    if (service.spec.succession !== undefined || hasTarget(service, operation)) return undefined;
    const message =
      lostNode(operation) === undefined
        ? "The replica did not have all that the primary wrote, or did not take a write, in time: the primary is the same as before."
        : "No replica could take the place of the primary that fell silent: the primary is the same as before.";
    return { code: "rolled_back", message };
  },
};

/** The steps of a single node come first, and then the copies. */
function creationProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  if (service.status.state === "Running" && observed.nodes.some(({ node }) => node.joining))
    return { step: "SyncReplicas", progressPct: 90 };
  const nodes = observed.nodes.filter(({ isReplica }) => isReplica !== true);
  return holdToSpec.progress(service, { ...observed, nodes }, operation);
}

function addProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const member = memberOf(observed, operation);
  const primary = observed.nodes.find(({ isReplica }) => isReplica !== true);
  if (member?.machine === undefined || member.machine.status.address === "")
    return { step: "SetupNetwork", progressPct: 5 };
  if (member.machine.status.state !== "running") return { step: "SetupServer", progressPct: 15 };
  if (!member.connected || member.instance === undefined) return { step: "SetupAgent", progressPct: 25 };
  if (nodeOf(service, operation)?.joining === undefined) return { step: "SetupDNS", progressPct: 90 };
  const copied = Number(member.instance.replication?.copiedBytes ?? 0n);
  const all = Math.max(1, Number(primary?.instance?.dataBytes ?? 0n));
  return { step: "SyncReplica", progressPct: 30 + Math.floor(50 * Math.min(1, copied / all)) };
}

function failoverProgress(
  { spec }: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const { succession } = spec;
  const isLost = lostNode(operation) !== undefined;
  if (succession === undefined)
    return {
      step: observed.names !== "verified" ? "MoveDNS" : isLost ? "MarkUnavailable" : "FollowPrimary",
      progressPct: 80,
    };
  return successionProgress(succession, observed);
}

/** The primary that fell silent; undefined for a failover that somebody asked for. */
function lostNode(operation: OperationObject): string | undefined {
  return workOf(operation, "failover")?.from;
}

function hasTarget({ status }: ManagedServiceObject, operation: OperationObject): boolean {
  const lost = lostNode(operation);
  return lost === undefined ? status.primaryNodeId === targetOf(operation) : status.primaryNodeId !== lost;
}

function targetOf(operation: OperationObject): string | undefined {
  const { type } = operation.spec;
  return type === "add_node" || type === "remove_node" || type === "move_node" || type === "failover"
    ? workOf(operation, type)?.nodeId
    : undefined;
}

/** Is the node that is moved away still there? */
function hasOld({ spec }: ManagedServiceObject, operation: OperationObject): boolean {
  const from = workOf(operation, "move_node")?.from;
  return spec.nodes.some(({ id }) => id === from);
}

function nodeOf({ spec }: ManagedServiceObject, operation: OperationObject) {
  return spec.nodes.find(({ id }) => id === targetOf(operation));
}

function memberOf({ nodes }: ObservedService, operation: OperationObject) {
  return nodes.find(({ node }) => node.id === targetOf(operation));
}
