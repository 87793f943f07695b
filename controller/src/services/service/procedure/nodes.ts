import { type OperationObject, rolledBackError, warned } from "#operation/operation.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { moveFault, rollBackMove } from "../member/move-node.ts";
import type { ObservedService } from "../reconcile/observed-service.ts";
import { convergeToSpec } from "./converge-to-spec.ts";
import type { Procedure, StepProgress } from "./procedure.ts";
import { primaryChangeProgress } from "./restarting.ts";
import { memberOperations, serviceOperations, stuckFault } from "../service-operations.ts";
import { isLeader } from "../member/member-roles.ts";
import { strategyOf } from "../member/strategies.ts";

/** A creation completes when all replicas follow; clients are served as soon as the primary runs. */
export const creation: Procedure = {
  ...convergeToSpec,
  progress: creationProgress,
  isComplete: (service, observed, operation) =>
    service.spec.nodes.every(({ joining }) => joining === undefined) &&
    convergeToSpec.isComplete(service, observed, operation),
  fault(observed, operation, now, { status }) {
    if (status.state !== "Running") return undefined;
    const advice = "The service runs: remove the node that does not join the others, and add another one.";
    const lost = observed.nodes.find(({ node, machine }) => node.joining && machine?.status.state === "failed");
    if (lost !== undefined) return { code: "machine_failed", message: `${lost.machine?.status.reason} ${advice}` };
    const isStuck = stuckFault(operation, now) !== undefined;
    return isStuck ? { code: "stuck", message: `No progress for 10 minutes. ${advice}` } : undefined;
  },
  recordResults: (operation, { nodes }) =>
    warned(
      operation,
      nodes.flatMap(({ instance }) => instance?.restore?.warnings ?? []),
    ),
};

/** Adds replicas; complete once each of them receives the primary's log and its name resolves. */
export const addNode: Procedure = {
  ...convergeToSpec,
  progress: addProgress,
  isComplete: (service, observed, operation) =>
    joiningOf(service, operation).length === 0 && convergeToSpec.isComplete(service, observed, operation),
  fault(observed, operation, _now, service) {
    const added = joiningOf(service, operation).map(({ id }) => id);
    const lost = observed.nodes.find(
      ({ node, machine }) => added.includes(node.id) && machine?.status.state === "failed",
    );
    if (lost === undefined) return undefined;
    return { code: "machine_failed", message: `${lost.machine?.status.reason} Remove the node, and add another one.` };
  },
};

/** Removes a replica with its machine, and its slot on the primary. */
export const removeNode: Procedure = {
  ...convergeToSpec,
  progress: (service, observed, operation) => strategyOf(service).removal(observed, nodeOf(service, operation)),
  isComplete: (service, observed, operation) =>
    nodeOf(service, operation) === undefined && convergeToSpec.isComplete(service, observed, operation),
};

/** Adds a member on another host, switches over to it if the old member is the primary, and removes the old member. */
export const moveNode: Procedure = {
  ...convergeToSpec,
  progress(service, observed, operation) {
    const { primaryChange } = service.spec;
    if (operation.status.rollback !== undefined) return { step: "RemoveServer", progressPct: 90 };
    if (nodeOf(service, operation)?.joining === true) return addProgress(service, observed, operation);
    if (primaryChange !== undefined) return { ...primaryChangeProgress(primaryChange, observed), progressPct: 90 };
    const old = oldOf(service, operation);
    if (old?.leaving === true) {
      const { step, progressPct } = strategyOf(service).removal(observed, old);
      return { step, progressPct: 85 + Math.floor(progressPct / 10) };
    }
    return old === undefined ? { step: "RemoveServer", progressPct: 95 } : { step: "SwitchOver", progressPct: 85 };
  },
  isComplete: (service, observed, operation) =>
    (operation.status.rollback === undefined
      ? oldOf(service, operation) === undefined && nodeOf(service, operation)?.joining === undefined
      : nodeOf(service, operation)?.leaving === undefined) && convergeToSpec.isComplete(service, observed, operation),
  fault: (observed, operation, now, service) => moveFault(service, observed, operation, targetOf(operation) ?? "", now),
  rollBack: (service, operation, fault, now) => rollBackMove(service, operation, fault, targetOf(operation) ?? "", now),
  rolledBackFault: (operation) => rolledBackError(operation, "The node remains on its host."),
};

/** Changes the primary: a switchover to a chosen replica, or a failover. */
export const failover: Procedure = {
  ...convergeToSpec,
  progress: failoverProgress,
  isComplete: (service, observed, operation) =>
    hasTarget(service, operation) && convergeToSpec.isComplete(service, observed, operation),
  fault(_observed, operation, _now, service) {
    if (service.spec.primaryChange !== undefined || hasTarget(service, operation)) return undefined;
    const message =
      lostNode(operation) === undefined
        ? "The replica did not replay the whole log or take a write in time. The primary is unchanged."
        : "No replica could replace the primary that does not respond. The primary is unchanged.";
    return { code: "rolled_back", message };
  },
};

/** Progress of the primary first, then of the copies by the replicas. */
function creationProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  if (service.status.state === "Running" && observed.nodes.some(({ node }) => node.joining))
    return { step: "SyncReplicas", progressPct: 90 };
  const nodes = observed.nodes.filter(({ isReplica }) => isReplica !== true);
  return convergeToSpec.progress(service, { ...observed, nodes }, operation);
}

/** Progress of the next node that joins, after those that have joined. */
function addProgress(
  service: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const [next, ...later] = joiningOf(service, operation);
  if (next === undefined) return { step: "SetupDNS", progressPct: 90 };
  const count = addedBy(operation).length;
  const joined = count - 1 - later.length;
  const { step, progressPct } = joinProgress(service, observed, next);
  return { step, progressPct: Math.floor((90 * joined + progressPct) / count) };
}

function joinProgress(service: ManagedServiceObject, observed: ObservedService, { id }: NodeSpec): StepProgress {
  const member = observed.nodes.find(({ node }) => node.id === id);
  if (member?.machine === undefined || member.machine.status.address === "")
    return { step: "SetupNetwork", progressPct: 5 };
  if (member.machine.status.state !== "running") return { step: "SetupServer", progressPct: 15 };
  if (!member.connected || member.instance === undefined) return { step: "SetupAgent", progressPct: 25 };
  return {
    step: "SyncReplica",
    progressPct: 30 + Math.floor(50 * strategyOf(service).copied(observed, member)),
  };
}

function failoverProgress(
  { spec }: ManagedServiceObject,
  observed: ObservedService,
  operation: OperationObject,
): StepProgress {
  const { primaryChange } = spec;
  const isLost = lostNode(operation) !== undefined;
  if (primaryChange === undefined)
    return {
      step: observed.names !== "verified" ? "MoveDNS" : isLost ? "MarkUnavailable" : "FollowPrimary",
      progressPct: 80,
    };
  return primaryChangeProgress(primaryChange, observed);
}

/** The silent primary of a failover; undefined for a switchover. */
function lostNode(operation: OperationObject): string | undefined {
  return serviceOperations.failover.workOf(operation)?.from;
}

function hasTarget(service: ManagedServiceObject, operation: OperationObject): boolean {
  const lost = lostNode(operation);
  return lost === undefined ? isLeader(service, { id: targetOf(operation) ?? "" }) : !isLeader(service, { id: lost });
}

function targetOf(operation: OperationObject): string | undefined {
  return memberOperations.map((type) => type.workOf(operation)).find((work) => work !== undefined)?.nodeId;
}

/** The moved node while it exists; undefined afterwards. */
function oldOf({ spec }: ManagedServiceObject, operation: OperationObject) {
  const from = serviceOperations.move_node.workOf(operation)?.from;
  return spec.nodes.find(({ id }) => id === from);
}

function nodeOf({ spec }: ManagedServiceObject, operation: OperationObject) {
  return spec.nodes.find(({ id }) => id === targetOf(operation));
}

/** Ids of the nodes that an addition, or a move, adds. */
function addedBy(operation: OperationObject): readonly (string | undefined)[] {
  return [targetOf(operation), ...(serviceOperations.add_node.workOf(operation)?.otherIds ?? [])];
}

/** The nodes of an addition that have not joined yet, in the order in which they join. */
function joiningOf({ spec }: ManagedServiceObject, operation: OperationObject) {
  const added = addedBy(operation);
  return spec.nodes.filter(({ id, joining }) => joining === true && added.includes(id));
}
