import { engineFormOf } from "../../engine/engine-forms.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";

/** A service has at most so many. */
export const mostNodes = 5;

type Members = Pick<ManagedServiceObject, "spec" | "status">;

/** Has it, or had it, more than one member? Others behave as if there were no replication at all. */
export function isReplicated({ nextNodeNumber }: Pick<ManagedServiceSpec, "nextNodeNumber">): boolean {
  return nextNodeNumber !== undefined;
}

/** Pure: what a member is to be. While nobody is the primary, whoever was it still counts as it. */
export function isPrimary({ status }: Pick<ManagedServiceObject, "status">, node: Pick<NodeSpec, "id">): boolean {
  return status.primaryNodeId === node.id;
}

export function numberOf(node: NodeSpec): number {
  return node.number ?? 1;
}

/** Pure: the number of the next member. None is used again. */
export function nextNumberOf({ nodes, nextNodeNumber }: Pick<ManagedServiceSpec, "nodes" | "nextNodeNumber">): number {
  return nextNodeNumber ?? Math.max(...nodes.map(numberOf)) + 1;
}

/** Pure: does the node have its data, and stay? */
export function isStaying({ joining, leaving }: Pick<NodeSpec, "joining" | "leaving">): boolean {
  return joining !== true && leaving !== true;
}

/** Pure: the replicas that have their data and stay. */
export function standbysOf(service: Members): NodeSpec[] {
  return service.spec.nodes.filter((node) => !isPrimary(service, node) && isStaying(node));
}

/** Does its primary take writes only while it has the right to, where its agent knows of rights? `known`: how far that does. */
export function hasRights(
  { spec }: Pick<ManagedServiceObject, "spec">,
  known: number = Number.POSITIVE_INFINITY,
): boolean {
  const needed = engineFormOf(spec.databaseType).replicas?.confirmRights;
  return needed !== undefined && known >= needed;
}

/** Pure: the members that a primary of now would be followed by without its consent. */
export function vouchersOf(service: Members): NodeSpec[] {
  return standbysOf(service).filter(({ vouches }) => vouches !== undefined);
}

/** Pure: the node that takes writes, as agents are told; empty while there is none. */
export function namedPrimary({ spec, status }: Members): string {
  const { step } = spec.succession ?? {};
  return step === "fence" || step === "yield" || step === "recall" ? "" : status.primaryNodeId;
}
