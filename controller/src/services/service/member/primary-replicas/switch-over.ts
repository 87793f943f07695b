import { managedServiceKind, type ManagedServiceObject, type NodeSpec } from "../../managed-service.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { isReadyForSwitchover } from "./failover/failover-readiness.ts";
import type { PrimaryChangeDeps } from "./change-primary.ts";
import { awaitsRestart, withDeliveredRestarts } from "../restarts.ts";

/** Maximum time for which a switchover waits for a lagging successor; then the primary restarts in place. */
const readyTimeoutMs = 60_000;

/**
 * Starts a switchover to a replica in one transaction: the primary is the last member of a rolling update, or the
 * replica replaces it on another host. A primary that awaits a restart is restarted in place if the replica lags too
 * much for too long.
 */
export async function switchOver(
  service: Stored<ManagedServiceObject>,
  to: NodeSpec,
  deps: PrimaryChangeDeps,
  signal: AbortSignal,
): Promise<void> {
  const { object } = service;
  const { failureDetector, clock } = deps;
  const fact = `heir ${object.metadata.id}/${object.spec.restartCount}`;
  const waitedMs = failureDetector.trueForMs(fact);
  const ready = await isReadyForSwitchover(object, to.id, deps, signal);
  const { spec, status } = object;
  const from = status.primaryNodeId;
  if (!ready && (waitedMs < readyTimeoutMs || !awaitsRestart(spec, { id: from }))) return;
  const primaryChange = { from, to: to.id, step: "yield", since: clock.now() } as const;
  const after = {
    ...object,
    spec: {
      ...spec,
      nodes: withDeliveredRestarts(spec, awaitsRestart(spec, { id: from }) ? [from] : []).map(withRequest),
      instanceGeneration: spec.instanceGeneration + 1,
      ...(ready && { primaryChange }),
    },
  };
  function withRequest(node: NodeSpec): NodeSpec {
    const isReplacement = ready && node.id === to.id && node.replaces?.nodeId === from;
    return isReplacement ? { ...node, replaces: { nodeId: from, switchoverRequested: true } } : node;
  }

  const unit = deps.begin();
  unit.update(managedServiceKind, service, after);
  await deps.services.untilRevision(await unit.commit(signal), 1_000);
  failureDetector.forget(fact);
}
