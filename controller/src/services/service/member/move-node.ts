import { type OperationObject, rollingBack, stuckAfterMs } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { ObservedNode, ObservedService } from "../reconcile/observed-service.ts";
import type { Fault } from "../procedure/procedure.ts";
import { beginOperation } from "../service-commands.ts";
import { isReplicated, isEstablished, nextNumberOf } from "./members.ts";
import { replicaNode } from "./new-replica.ts";
import { awaitsRollout } from "./rollout-state.ts";
import { isInSync, isLeader, isRemovable } from "./member-roles.ts";

/**
 * The next node to replace because its host is drained or lost, replicas first. Undefined if there is none, or while
 * the service has another change in progress.
 */
export function nodeToMove(service: ManagedServiceObject, { nodes }: ObservedService): NodeSpec | undefined {
  const { metadata, spec, status } = service;
  if (status.state !== "Running" || spec.power !== "on" || metadata.deletionRequestedAt !== undefined) return undefined;
  if (status.operationId !== null || spec.primaryChange !== undefined || spec.canary !== undefined) return undefined;
  if (spec.nodes.length === 1 || !isReplicated(spec)) return undefined;
  const isChanging = (node: NodeSpec) =>
    !isEstablished(node) || node.replaces !== undefined || awaitsRollout(spec, node);
  if (spec.nodes.some(isChanging)) return undefined;
  const leaving = nodes.filter(({ mustMove }) => mustMove === true).map(({ node }) => node);
  return leaving.find((node) => !isLeader(service, node)) ?? leaving[0];
}

/** The service with a new member, which replaces the node once it follows the primary. */
export function beginMove(
  service: ManagedServiceObject,
  node: NodeSpec,
  args: { readonly nodeId: string; readonly operationId: string; readonly now: number },
): { after: ManagedServiceObject; operation: OperationObject } {
  const { spec } = service;
  const number = nextNumberOf(spec);
  const next = replicaNode({ id: args.nodeId, hostname: spec.hostname, zone: node.zone, number });
  const nodes = [...spec.nodes, { ...next, replaces: { nodeId: node.id } }];
  const change = { nodes, nextNodeNumber: number + 1 };
  const { operationId, now } = args;
  return beginOperation(service, "move_node", change, { operationId, now, work: { nodeId: next.id, from: node.id } });
}

/** The replacement of the primary that is ready for a switchover; undefined if there is none. */
export function replacementPrimary(service: ManagedServiceObject, { nodes }: ObservedService): NodeSpec | undefined {
  if (service.spec.primaryChange !== undefined || service.status.state !== "Running") return undefined;
  return service.spec.nodes.find(
    (node) =>
      isEstablished(node) &&
      node.replaces !== undefined &&
      !isRemovable(service, { id: node.replaces.nodeId }) &&
      node.replaces.switchoverRequested !== true &&
      isInSyncNow(service, nodes, node),
  );
}

/** The service with replaced members marked for removal, if their replacements are in sync. */
export function withCompletedMoves(service: ManagedServiceObject, { nodes }: ObservedService): ManagedServiceObject {
  const { spec } = service;
  if (spec.primaryChange !== undefined || spec.nodes.every(({ replaces }) => replaces === undefined)) return service;
  let generation = spec.instanceGeneration;
  let after = spec.nodes;
  for (const node of spec.nodes) {
    const old = after.find(({ id }) => id === node.replaces?.nodeId);
    if (node.replaces === undefined) continue;
    if (old === undefined) after = after.map((each) => (each.id === node.id ? withoutReplacing(each) : each));
    if (old === undefined || old.leaving === true || !isRemovable(service, old)) continue;
    const isTaken = isInSyncNow(service, nodes, node);
    if (!isEstablished(node) || !isTaken) continue;
    after = after.map((each) => (each.id === old.id ? { ...each, leaving: true as const } : each));
    generation += 1;
  }
  return after === spec.nodes
    ? service
    : { ...service, spec: { ...spec, nodes: after, instanceGeneration: generation } };
}

function isInSyncNow(service: ManagedServiceObject, nodes: readonly ObservedNode[], { id }: NodeSpec): boolean {
  return nodes.some((seen) => seen.node.id === id && isInSync(service, seen));
}

/** Reason to abort the move, so that the node remains on its host; undefined while its replacement may complete. */
export function moveFault(
  service: ManagedServiceObject,
  { nodes }: ObservedService,
  operation: OperationObject,
  nodeId: string,
  now: number,
): Fault | undefined {
  const { primaryChange, nodes: members } = service.spec;
  if (operation.status.rollback !== undefined) return undefined;
  const next = members.find(({ id }) => id === nodeId);
  if (next?.replaces === undefined) return undefined;
  const machine = nodes.find(({ node }) => node.id === nodeId)?.machine;
  if (machine?.status.state === "failed") return { code: "machine_failed", message: machine.status.reason };
  if (
    next.replaces.switchoverRequested === true &&
    primaryChange === undefined &&
    !isRemovable(service, { id: next.replaces.nodeId })
  )
    return { code: "switchover_failed", message: "The switchover to the new node did not complete in time." };
  const { deadline, step } = operation.status;
  if (deadline === null || now < deadline) return undefined;
  return { code: "stuck", message: `The move made no progress for ${stuckAfterMs / 60_000} minutes, at step ${step}.` };
}

/** Removes the new member, unless it has become the primary. */
export function rollBackMove(
  service: ManagedServiceObject,
  operation: OperationObject,
  fault: Fault,
  nodeId: string,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec } = service;
  const nodes = spec.nodes.map((node) => {
    if (node.id !== nodeId) return node;
    return !isRemovable(service, node) ? withoutReplacing(node) : { ...withoutReplacing(node), leaving: true as const };
  });
  return {
    after: {
      ...service,
      metadata: nextMetadata(metadata, now),
      spec: { ...spec, nodes, instanceGeneration: spec.instanceGeneration + 1 },
    },
    operation: rollingBack(operation, fault, now),
  };
}

function withoutReplacing(node: NodeSpec): NodeSpec {
  const { replaces: _, ...rest } = node;
  return rest;
}
