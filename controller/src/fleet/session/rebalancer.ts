import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { SessionFacts } from "./session-facts.ts";
import type { AgentSession } from "./session.ts";

/** Factor of its share that a controller tolerates, so that agents are not redirected for a small difference. */
const toleratedShare = 1.25;
/** Number of streams that are tolerated in addition. */
const toleratedStreams = 8;

/**
 * Number of streams that a controller should redirect. Rebalancing begins when it has more than the tolerated number,
 * and continues down to its share (`isRebalancing`).
 */
export function excessStreams(streams: number, all: number, controllers: number, isRebalancing: boolean): number {
  const share = Math.ceil(all / Math.max(controllers, 1));
  const tolerated = isRebalancing ? share : share * toleratedShare + toleratedStreams;
  return streams > tolerated ? streams - share : 0;
}

export interface RebalancerDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers">;
  /** Every stream of the fleet, with the controller that has it. */
  readonly entries: () => Iterable<readonly [machineId: string, facts: SessionFacts]>;
  /** The streams of this controller. */
  readonly sessions: () => Iterable<AgentSession>;
  /** Interval between two batches. */
  readonly intervalMs: number;
  /** Maximum number of redirects per interval: each needs a TLS handshake at the other controller. */
  readonly batchSize: number;
}

/**
 * Redirects agents to controllers with fewer streams, in batches, so that an added or restarted controller gets its
 * share. An agent retains its stream until the other controller has welcomed it. Agents with a task in progress are not
 * redirected.
 */
export function createRebalancer(deps: RebalancerDeps): { close(): void } {
  const { controllerRegistry, entries, sessions, intervalMs, batchSize } = deps;
  let isRebalancing = false;

  function rebalance(): void {
    const accepting = controllerRegistry.controllers().filter(({ address, draining }) => address !== "" && !draining);
    const streams = new Map(accepting.map(({ id }) => [id, 0]));
    const ownId = controllerRegistry.id;
    if (streams.size < 2 || !streams.has(ownId)) return;
    let all = 0;
    for (const [, { controllerId }] of entries()) {
      if (!streams.has(controllerId)) continue;
      streams.set(controllerId, (streams.get(controllerId) ?? 0) + 1);
      all += 1;
    }
    const surplus = excessStreams(streams.get(ownId) ?? 0, all, streams.size, isRebalancing);
    isRebalancing = surplus > 0;
    let budget = Math.min(batchSize, surplus);
    for (const session of sessions()) {
      if (budget === 0) return;
      if (session.waiting.size > 0 || session.delivered.size > 0) continue;
      const [leastLoaded, count] = [...streams].reduce((best, each) => (each[1] < best[1] ? each : best));
      const address = accepting.find(({ id }) => id === leastLoaded)?.address ?? "";
      streams.set(leastLoaded, count + 1);
      budget -= 1;
      session.send({ case: "redirect", value: { controller: address } });
    }
  }

  const timer = setInterval(rebalance, intervalMs).unref();
  return { close: () => clearInterval(timer) };
}
