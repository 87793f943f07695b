import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec, Restarts } from "../managed-service.ts";

type Counted = Pick<ManagedServiceSpec, "nodes" | "restartCount">;

/** Restart counters of one node; the service's if the node has none. */
export function restartsOf({ nodes, restartCount }: Counted, { id }: Pick<NodeSpec, "id">): Restarts {
  const nodeRestarts = nodes.find((node) => node.id === id)?.restarts;
  return nodeRestarts ?? { delivered: restartCount, desired: restartCount };
}

/** True if a requested restart of the node is not in its instance spec yet. */
export function awaitsRestart(spec: Counted, node: Pick<NodeSpec, "id">): boolean {
  const { delivered, desired } = restartsOf(spec, node);
  return delivered < desired;
}

/**
 * Restart counters with one more requested restart. The nodes of a running service with several nodes restart one after
 * another, in a rolling update.
 */
export function withRestart({ spec, status }: Pick<ManagedServiceObject, "spec" | "status">): Counted {
  const restartCount = spec.restartCount + 1;
  const isRolling = status.state === "Running" && spec.nodes.length > 1;
  const nodes = spec.nodes.map((node) =>
    isRolling && node.joining !== true
      ? { ...node, restarts: { delivered: restartsOf(spec, node).delivered, desired: restartCount } }
      : withoutRestarts(node),
  );
  return { restartCount, nodes };
}

/** The node without separate restart counters, so that its engine starts with all restarts of the service. */
export function withoutRestarts(node: NodeSpec): NodeSpec {
  const { restarts: _, ...rest } = node;
  return rest;
}

/** The nodes, with all requested restarts in the instance specs of the nodes `ids`. */
export function withDeliveredRestarts(spec: Counted, ids: readonly string[]): NodeSpec[] {
  return spec.nodes.map((node) => {
    if (!ids.includes(node.id)) return node;
    const { desired } = restartsOf(spec, node);
    return { ...node, restarts: { delivered: desired, desired } };
  });
}
