import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";
import { operationMembers } from "../operation-members.ts";
import { beginOperation } from "../service-verbs.ts";
import { isPrimary, isStaying, maxNodes, nextNumberOf } from "./members.ts";
import { hasOutdatedData } from "../canary/node-image.ts";
import { refuseLastStandby } from "./sync-standbys.ts";
import { replicaNode, requireReplicas } from "./new-replica.ts";

/** A changed service, its operation, and the node that it is about. */
export interface NodeChange {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
  readonly node: NodeSpec;
}

interface OperationArgs {
  readonly operationId: string;
  readonly now: number;
}

/** Pure: the service with one more replica. Throws the reason why it cannot have one. */
export function addNode(
  service: ManagedServiceObject,
  { nodeId, zone, ...args }: OperationArgs & { readonly nodeId: string; readonly zone: string | undefined },
): NodeChange {
  const { spec } = service;
  requireReplicas(spec.databaseType);
  if (spec.nodes.length >= maxNodes) {
    const figures = { quota: "nodes", used: spec.nodes.length, args: 1, limit: maxNodes };
    const detail = `The service has ${spec.nodes.length} of ${maxNodes} nodes; 1 more is too many.`;
    throw new HoldfastError("QUOTA_EXCEEDED", detail, { members: figures });
  }
  const number = nextNumberOf(spec);
  const node = replicaNode({ id: nodeId, hostname: spec.hostname, zone: zone ?? spec.zone, number });
  const change = { nodes: [...spec.nodes, node], nextNodeNumber: number + 1 };
  return { ...begin(service, "add_node", node, change, args), node };
}

/** Pure: the service with a replica marked for removal. Throws the reason why it must stay. */
export function removeNode(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec } = service;
  if (isPrimary(service, node)) {
    const anotherNode = spec.nodes.find((each) => each.id !== node.id);
    const advice =
      anotherNode === undefined ? "Delete the service" : "Fail over to a replica first, or delete the service";
    throw new HoldfastError("WRONG_STATE", `The node is the primary. ${advice}.`, {
      members: operationMembers(service, undefined),
    });
  }
  refuseLastStandby(service, node);
  const leaving: NodeSpec = { ...node, leaving: true };
  const change = { nodes: spec.nodes.map((each) => (each.id === node.id ? leaving : each)) };
  return { ...begin(service, "remove_node", leaving, change, args), node: leaving };
}

function begin(
  service: ManagedServiceObject,
  type: "add_node" | "remove_node" | "failover",
  { id: nodeId }: NodeSpec,
  change: Partial<ManagedServiceSpec>,
  { operationId, now }: OperationArgs,
): Omit<NodeChange, "node"> {
  // A primary change may outlast the operation that began it: it waits for members that are present.
  if (service.spec.primaryChange !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service's primary is changing. Wait until its new primary answers.", {
      members: operationMembers(service, undefined),
    });
  return beginOperation(service, type, change, { operationId, now, work: { nodeId } });
}

/** Pure: the begin of a switchover to this replica. Throws the reason why it is not possible. */
export function failOver(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec, status } = service;
  const members = operationMembers(service, undefined);
  if (isPrimary(service, node)) throw new HoldfastError("WRONG_STATE", "The node is the primary already.", { members });
  if (!isStaying(node) || hasOutdatedData(spec, node))
    throw new HoldfastError("WRONG_STATE", "The node does not follow the primary.", { members });
  const primaryChange = { from: status.primaryNodeId, to: node.id, step: "yield", since: args.now } as const;
  return { ...begin(service, "failover", node, { ...spec, primaryChange }, args), node };
}
