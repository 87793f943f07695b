import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec, Restarts } from "../managed-service.ts";

type Counted = Pick<ManagedServiceSpec, "nodes" | "restartCount">;

/** Pure: the restarts of one node; those of a service that never restarted with several nodes are the service's. */
export function restartsOf({ nodes, restartCount }: Counted, { id }: Pick<NodeSpec, "id">): Restarts {
  const own = nodes.find((node) => node.id === id)?.restarts;
  return own ?? { told: restartCount, wanted: restartCount };
}

/** Does it wait for its turn? */
export function isBehind(spec: Counted, node: Pick<NodeSpec, "id">): boolean {
  const { told, wanted } = restartsOf(spec, node);
  return told < wanted;
}

/** Pure: one more restart is asked for. The nodes of a service that runs with several wait for their turns. */
export function withRestart({ spec, status }: Pick<ManagedServiceObject, "spec" | "status">): Counted {
  const restartCount = spec.restartCount + 1;
  const isRolling = status.state === "Running" && spec.nodes.length > 1;
  const nodes = spec.nodes.map((node) =>
    isRolling && node.joining !== true
      ? { ...node, restarts: { told: restartsOf(spec, node).told, wanted: restartCount } }
      : withoutRestarts(node),
  );
  return { restartCount, nodes };
}

/** Pure: a node whose engine starts with all restarts that were ever asked for. */
export function withoutRestarts(node: NodeSpec): NodeSpec {
  const { restarts: _, ...rest } = node;
  return rest;
}

/** Pure: the nodes with these having had their turn. */
export function withTold(spec: Counted, ids: readonly string[]): NodeSpec[] {
  return spec.nodes.map((node) => {
    if (!ids.includes(node.id)) return node;
    const { wanted } = restartsOf(spec, node);
    return { ...node, restarts: { told: wanted, wanted } };
  });
}
