import type { ControllerRegistry } from "#kernel/runtime/controller-registry.ts";
import type { SessionFacts } from "./session-facts.ts";
import type { Session } from "./session.ts";

/** Excess over its share that a controller tolerates, so that agents are not redirected for a small difference. */
const toleratedShare = 1.25;
const toleratedStreams = 8;

/**
 * Number of streams that a controller should redirect. Rebalancing begins when it has much more than its share,
 * and continues down to its share (`hasBegun`).
 */
export function excessStreams(streams: number, all: number, controllers: number, hasBegun: boolean): number {
  const share = Math.ceil(all / Math.max(controllers, 1));
  const tolerated = hasBegun ? share : share * toleratedShare + toleratedStreams;
  return streams > tolerated ? streams - share : 0;
}

export interface RebalancerDeps {
  readonly controllerRegistry: Pick<ControllerRegistry, "id" | "controllers">;
  /** Every stream of the fleet, with the controller that has it. */
  readonly entries: () => Iterable<readonly [machineId: string, facts: SessionFacts]>;
  /** The streams of this controller. */
  readonly sessions: () => Iterable<Session>;
  readonly everyMs: number;
  /** Largest number of redirects each time, because each costs the other controller a TLS handshake. */
  readonly atOnce: number;
}

/**
 * Redirects agents to controllers with fewer streams, in batches, so that an added or restarted controller gets its
 * share. An agent keeps its stream until the other controller has welcomed it. Agents with a task in progress are not
 * redirected.
 */
export function createRebalancer(deps: RebalancerDeps): { close(): void } {
  const { controllerRegistry, entries, sessions, everyMs, atOnce } = deps;
  let hasBegun = false;

  function rebalance(): void {
    const taking = controllerRegistry.controllers().filter(({ address, draining }) => address !== "" && !draining);
    const streams = new Map(taking.map(({ id }) => [id, 0]));
    const own = controllerRegistry.id;
    if (streams.size < 2 || !streams.has(own)) return;
    let all = 0;
    for (const [, { controllerId }] of entries()) {
      if (!streams.has(controllerId)) continue;
      streams.set(controllerId, (streams.get(controllerId) ?? 0) + 1);
      all += 1;
    }
    const surplus = excessStreams(streams.get(own) ?? 0, all, streams.size, hasBegun);
    hasBegun = surplus > 0;
    let budget = Math.min(atOnce, surplus);
    for (const session of sessions()) {
      if (budget === 0) return;
      if (session.waiting.size > 0 || session.delivered.size > 0) continue;
      const [fewest, count] = [...streams].reduce((best, each) => (each[1] < best[1] ? each : best));
      const address = taking.find(({ id }) => id === fewest)?.address ?? "";
      streams.set(fewest, count + 1);
      budget -= 1;
      session.send({ case: "redirect", value: { controller: address } });
    }
  }

  const timer = setInterval(rebalance, everyMs).unref();
  return { close: () => clearInterval(timer) };
}
