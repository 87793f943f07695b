import assert from "node:assert";
import { requireAmount } from "#kernel/store/quota.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { maxNodes, nextNumberOf } from "./members.ts";
import { replicaNode } from "./new-replica.ts";
import { memberCommandsOf } from "./member-commands.ts";
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
  memberCommandsOf(service).requireAddable(service, nodeIds.length);
  const figures = { used: spec.nodes.length, requested: nodeIds.length, limit: maxNodes };
  requireAmount({ name: "nodes", label: "nodes" }, figures, "The service has");
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
export function markNodeForRemoval(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec } = service;
  memberCommandsOf(service).requireRemovable(service, node);
  const leaving: NodeSpec = { ...node, leaving: true };
  const change = { nodes: spec.nodes.map((each) => (each.id === node.id ? leaving : each)) };
  return { ...beginNodeChange(service, "remove_node", leaving, change, args), node: leaving };
}
