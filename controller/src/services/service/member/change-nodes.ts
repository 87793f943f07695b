import assert from "node:assert";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { maxNodes, nextNumberOf } from "./members.ts";
import { replicaNode } from "./new-replica.ts";
import { memberVerbsOf } from "./member-verbs.ts";
import { beginNodeChange, type NodeChange, type OperationArgs } from "./node-change.ts";

/**
 * The service with a new replica for each of the ids, of which there is at least one. Throws if the service cannot have
 * them, with the reason.
 */
export function addNodes(
  service: ManagedServiceObject,
  {
    nodeIds,
    zone,
    ...args
  }: OperationArgs & { readonly nodeIds: readonly string[]; readonly zone: string | undefined },
): NodeChange {
  const { spec } = service;
  memberVerbsOf(service).requireAddable(service, nodeIds.length);
  if (spec.nodes.length + nodeIds.length > maxNodes) {
    const figures = { quota: "nodes", used: spec.nodes.length, args: nodeIds.length, limit: maxNodes };
    const verb = nodeIds.length === 1 ? "is" : "are";
    const detail = `The service has ${spec.nodes.length} of ${maxNodes} nodes; ${nodeIds.length} more ${verb} too many.`;
    throw new HoldfastError("QUOTA_EXCEEDED", detail, { members: figures });
  }
  const first = nextNumberOf(spec);
  const added = nodeIds.map((id, index) =>
    replicaNode({ id, hostname: spec.hostname, zone: zone ?? spec.zone, number: first + index }),
  );
  const [node, ...others] = added;
  assert(node !== undefined, "at least one node is added");
  const change = { nodes: [...spec.nodes, ...added], nextNodeNumber: first + added.length };
  return { ...beginNodeChange(service, "add_node", node, change, args, others), node };
}

/** The service with a replica marked for removal. Throws if the replica cannot be removed, with the reason. */
export function removeNode(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec } = service;
  memberVerbsOf(service).requireRemovable(service, node);
  const leaving: NodeSpec = { ...node, leaving: true };
  const change = { nodes: spec.nodes.map((each) => (each.id === node.id ? leaving : each)) };
  return { ...beginNodeChange(service, "remove_node", leaving, change, args), node: leaving };
}
