import type { ManagedServiceSpec, NodeSpec } from "../managed-service.ts";

/*
 * Members of a service: their numbers and limits. The topology of the engine decides their roles (`member-roles.ts`)
 * and how they change (`member-strategy.ts`). `rolling-update.ts` restarts members one after another, and
 * `move-node.ts` replaces them.
 */

/** Maximum number of nodes of a service. */
export const maxNodes = 5;

/** Time after which operations no longer wait for a disconnected member. */
export const disconnectedAfterMs = 30_000;

/** True if the service has, or ever had, several members. Other services do not use replication. */
export function isReplicated({ nextNodeNumber }: Pick<ManagedServiceSpec, "nextNodeNumber">): boolean {
  return nextNodeNumber !== undefined;
}

/** Number of a member, 1 for the first. */
export function numberOf(node: NodeSpec): number {
  return node.number ?? 1;
}

/** The number of the next member. Numbers are never reused. */
export function nextNumberOf({ nodes, nextNodeNumber }: Pick<ManagedServiceSpec, "nodes" | "nextNodeNumber">): number {
  return nextNodeNumber ?? Math.max(...nodes.map(numberOf)) + 1;
}

/** True if the node has its data and is not being removed. */
export function isEstablished({ joining, leaving }: Pick<NodeSpec, "joining" | "leaving">): boolean {
  return joining !== true && leaving !== true;
}
