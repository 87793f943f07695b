import { managedServiceKind, type ManagedServiceObject, type NodeSpec } from "../managed-service.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { isReady } from "./failover-readiness.ts";
import type { HandOverDeps } from "./hand-over.ts";
import { isBehind, withTold } from "./restarts.ts";

/** So long the heir may lag too much; then the primary restarts as it is. */
const readyWithinMs = 60_000;

/**
 * The primary begins to give way to a replica, by one transaction: because it is its turn to restart, or because that one takes its
 * place elsewhere. One that is to restart does so as the primary when the replica stays too far behind.
 */
export async function switchOver(
  service: Stored<ManagedServiceObject>,
  to: NodeSpec,
  deps: HandOverDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { pulse, clock } = deps;
  const fact = `heir ${object.metadata.id}/${object.spec.restartCount}`;
  const waitedMs = pulse.knownForMs(fact);
  const ready = await isReady(object, to.id, deps, signal);
  const { spec, status } = object;
  const from = status.primaryNodeId;
  if (!ready && (waitedMs < readyWithinMs || !isBehind(spec, { id: from }))) return;
  const succession = { from, to: to.id, step: "yield", since: clock.now() } as const;
  const after = {
    ...object,
    spec: {
      ...spec,
      nodes: withTold(spec, isBehind(spec, { id: from }) ? [from] : []).map(asked),
      instanceGeneration: spec.instanceGeneration + 1,
      ...(ready && { succession }),
    },
  };
  function asked(node: NodeSpec): NodeSpec {
    const isInPlace = ready && node.id === to.id && node.replaces?.nodeId === from;
    return isInPlace ? { ...node, replaces: { nodeId: from, asked: true } } : node;
  }

  const unit = deps.begin();
  unit.update(managedServiceKind, service, after);
  await deps.services.reached(await unit.commit(signal), 1_000);
  pulse.forget(fact);
}
