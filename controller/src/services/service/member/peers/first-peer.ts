import { topologyOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceSpec, NodeSpec } from "../../managed-service.ts";

/** Not two: the loss of either member would lose the majority. */
const memberCounts: readonly number[] = [1, 3, 4, 5];

/** True if the members of the engine's services elect their leader. */
export function isCluster(databaseType: string): boolean {
  return topologyOf(databaseType) === "peers";
}

/** The nodes of a new service with a single node. */
export function firstNodes(
  node: NodeSpec,
  databaseType: string,
): Pick<ManagedServiceSpec, "nodes"> & Partial<Pick<ManagedServiceSpec, "nextNodeNumber">> {
  return isCluster(databaseType) ? { nodes: [firstPeer(node)], nextNodeNumber: 2 } : { nodes: [node] };
}

/** A first member, which forms a new cluster together with the other first members. */
export function firstPeer(node: NodeSpec): NodeSpec {
  return { ...node, joining: true, forms: true };
}

/** First members of which only the first one forms the cluster, with restored data: the others join it afterwards. */
export function withFirstMember(nodes: readonly NodeSpec[]): NodeSpec[] {
  return nodes.map(({ forms, ...node }, index) => (forms === true && index === 0 ? { ...node, forms } : node));
}

/** Throws NOT_POSSIBLE if services of the engine cannot have this number of nodes. `remedy` ends the message. */
export function requireMemberCount(databaseType: string, count: number, remedy = ""): void {
  if (memberCounts.includes(count)) return;
  const reason = count === 2 ? ": with 2, the loss of either one loses the majority" : "";
  throw new HoldfastError(
    "NOT_POSSIBLE",
    `A service of ${databaseType} has ${memberCounts.join(", ")} nodes${reason}.${remedy}`,
  );
}
