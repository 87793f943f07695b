import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec, Restarts } from "../managed-service.ts";

type Counted = Pick<ManagedServiceSpec, "nodes" | "restartCount">;

/** Restarts of one node; without a record of its own, the service's. */
export function restartsOf({ nodes, restartCount }: Counted, { id }: Pick<NodeSpec, "id">): Restarts {
  const own = nodes.find((node) => node.id === id)?.restarts;
  return own ?? { delivered: restartCount, desired: restartCount };
}

/** True if a requested restart is not in its agent's settings yet. */
export function awaitsRestart(spec: Counted, node: Pick<NodeSpec, "id">): boolean {
  const { delivered, desired } = restartsOf(spec, node);
  return delivered < desired;
}

/**
 * One more requested restart. In a running service with several nodes, each waits for its part of a rolling
 * update.
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

/** The node whose engine starts with all requested restarts. */
export function withoutRestarts(node: NodeSpec): NodeSpec {
  const { restarts: _, ...rest } = node;
  return rest;
}

/** The nodes, with all requested restarts in the settings of these. */
export function withDeliveredRestarts(spec: Counted, ids: readonly string[]): NodeSpec[] {
  return spec.nodes.map((node) => {
    if (!ids.includes(node.id)) return node;
    const { desired } = restartsOf(spec, node);
    return { ...node, restarts: { delivered: desired, desired } };
  });
}
