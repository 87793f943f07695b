import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";
import { operationMembers } from "../operation-members.ts";
import { beginOperation } from "../service-verbs.ts";
import { isPrimary, isStaying, mostNodes, nextNumberOf } from "./members.ts";
import { isOutdated } from "../trial/other-image.ts";
import { refuseLastStandby } from "./sync-standbys.ts";
import { replicaNode, requireReplicas } from "./new-replica.ts";

export interface NodeChange {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
  readonly node: NodeSpec;
}

interface Asked {
  readonly operationId: string;
  readonly now: number;
}

/** Pure: the service with one more replica, or throws why there can be none. */
export function addNode(
  service: ManagedServiceObject,
  { nodeId, zone, ...asked }: Asked & { readonly nodeId: string; readonly zone: string | undefined },
): NodeChange {
  const { spec } = service;
  requireReplicas(spec.databaseType);
  if (spec.nodes.length >= mostNodes) {
    const figures = { quota: "nodes", used: spec.nodes.length, asked: 1, limit: mostNodes };
    const detail = `The service has ${spec.nodes.length} of ${mostNodes} nodes; 1 more is too many.`;
    throw new HoldfastError("QUOTA_EXCEEDED", detail, { members: figures });
  }
  const number = nextNumberOf(spec);
  const node = replicaNode({ id: nodeId, hostname: spec.hostname, zone: zone ?? spec.zone, number });
  const change = { nodes: [...spec.nodes, node], nextNodeNumber: number + 1 };
  return { ...begin(service, "add_node", node, change, asked), node };
}

/** Pure: the service with a replica that goes, or throws why it has to stay. */
export function removeNode(service: ManagedServiceObject, node: NodeSpec, asked: Asked): NodeChange {
  const { spec } = service;
  if (isPrimary(service, node)) {
    const other = spec.nodes.find((each) => each.id !== node.id);
    const way = other === undefined ? "Delete the service" : "Fail over to a replica first, or delete the service";
    throw new HoldfastError("WRONG_STATE", `The node is the primary. ${way}.`, {
      members: operationMembers(service, undefined),
    });
  }
  refuseLastStandby(service, node);
  const leaving: NodeSpec = { ...node, leaving: true };
  const change = { nodes: spec.nodes.map((each) => (each.id === node.id ? leaving : each)) };
  return { ...begin(service, "remove_node", leaving, change, asked), node: leaving };
}

function begin(
  service: ManagedServiceObject,
  type: "add_node" | "remove_node" | "failover",
  { id: nodeId }: NodeSpec,
  change: Partial<ManagedServiceSpec>,
  { operationId, now }: Asked,
): Omit<NodeChange, "node"> {
  // The operation that began it may have ended: what it waits for are members that are there.
  if (service.spec.succession !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service's primary is changing. Wait until its new primary answers.", {
      members: operationMembers(service, undefined),
    });
  const { after, operation } = beginOperation(service, type, change, operationId, now);
  return { after, operation: { ...operation, spec: { ...operation.spec, work: { nodeId } } } };
}

/** Pure: the primary gives way to this replica, in order; or throws why it cannot. */
export function failOver(service: ManagedServiceObject, node: NodeSpec, asked: Asked): NodeChange {
  const { spec, status } = service;
  const members = operationMembers(service, undefined);
  if (isPrimary(service, node)) throw new HoldfastError("WRONG_STATE", "The node is the primary already.", { members });
  if (!isStaying(node) || isOutdated(spec, node))
    throw new HoldfastError("WRONG_STATE", "The node does not follow the primary.", { members });
  const succession = { from: status.primaryNodeId, to: node.id, step: "yield", since: asked.now } as const;
  return { ...begin(service, "failover", node, { ...spec, succession }, asked), node };
}
