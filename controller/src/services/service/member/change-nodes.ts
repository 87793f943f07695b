import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { maxNodes, nextNumberOf } from "./members.ts";
import { replicaNode } from "./new-replica.ts";
import { memberVerbsOf } from "./member-verbs.ts";
import { beginNodeChange, type NodeChange, type OperationArgs } from "./node-change.ts";

/** The service with one more replica. Throws if it cannot have one, with the reason. */
export function addNode(
  service: ManagedServiceObject,
  { nodeId, zone, ...args }: OperationArgs & { readonly nodeId: string; readonly zone: string | undefined },
): NodeChange {
  const { spec } = service;
  memberVerbsOf(service).requireAddable(service);
  if (spec.nodes.length >= maxNodes) {
    const figures = { quota: "nodes", used: spec.nodes.length, args: 1, limit: maxNodes };
    const detail = `The service has ${spec.nodes.length} of ${maxNodes} nodes; 1 more is too many.`;
    throw new HoldfastError("QUOTA_EXCEEDED", detail, { members: figures });
  }
  const number = nextNumberOf(spec);
  const node = replicaNode({ id: nodeId, hostname: spec.hostname, zone: zone ?? spec.zone, number });
  const change = { nodes: [...spec.nodes, node], nextNodeNumber: number + 1 };
  return { ...beginNodeChange(service, "add_node", node, change, args), node };
}

/** The service with a replica marked for removal. Throws if the replica cannot be removed, with the reason. */
export function removeNode(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec } = service;
  memberVerbsOf(service).requireRemovable(service, node);
  const leaving: NodeSpec = { ...node, leaving: true };
  const change = { nodes: spec.nodes.map((each) => (each.id === node.id ? leaving : each)) };
  return { ...beginNodeChange(service, "remove_node", leaving, change, args), node: leaving };
}
