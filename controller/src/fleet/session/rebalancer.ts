import type { Membership } from "#kernel/runtime/membership.ts";
import type { SessionFacts } from "./session-facts.ts";
import type { Session } from "./session.ts";

/** So much more than its share a controller may hold: agents that just came are not sent on for a few. */
const toleratedShare = 1.25;
const toleratedStreams = 8;

/** Pure: how many streams a controller gives away. It begins when it holds much more than its share, and ends with its share. */
export function excessStreams(held: number, all: number, controllers: number, hasBegun: boolean): number {
  const share = Math.ceil(all / Math.max(controllers, 1));
  const tolerated = hasBegun ? share : share * toleratedShare + toleratedStreams;
  return held > tolerated ? held - share : 0;
}

export interface RebalancerDeps {
  readonly membership: Pick<Membership, "id" | "members">;
  /** Every stream of the fleet, with who holds it. */
  readonly entries: () => Iterable<readonly [machineId: string, facts: SessionFacts]>;
  /** The streams that are here. */
  readonly sessions: () => Iterable<Session>;
  readonly everyMs: number;
  /** At most so many each time: each is a handshake for whoever gets it. */
  readonly atOnce: number;
}

/**
 * Sends agents on to controllers that hold fewer, a few at a time: a controller that was added or started again would else
 * get only those that happen to dial anew. Each keeps its stream until the other controller welcomed it, and one with a task
 * under way is left where it is.
 */
export function createRebalancer(deps: RebalancerDeps): { close(): void } {
  const { membership, entries, sessions, everyMs, atOnce } = deps;
  let hasBegun = false;

  function look(): void {
    const taking = membership.members().filter(({ address, draining }) => address !== "" && !draining);
    const held = new Map(taking.map(({ id }) => [id, 0]));
    const own = membership.id;
    if (held.size < 2 || !held.has(own)) return;
    let all = 0;
    for (const [, { controllerId }] of entries()) {
      if (!held.has(controllerId)) continue;
      held.set(controllerId, (held.get(controllerId) ?? 0) + 1);
      all += 1;
    }
    const surplus = excessStreams(held.get(own) ?? 0, all, held.size, hasBegun);
    hasBegun = surplus > 0;
    let left = Math.min(atOnce, surplus);
    for (const session of sessions()) {
      if (left === 0) return;
      if (session.waiting.size > 0 || session.delivered.size > 0) continue;
      const [fewest, count] = [...held].reduce((best, each) => (each[1] < best[1] ? each : best));
      const address = taking.find(({ id }) => id === fewest)?.address ?? "";
      held.set(fewest, count + 1);
      left -= 1;
      session.send({ case: "redirect", value: { controller: address } });
    }
  }

  const timer = setInterval(look, everyMs).unref();
  return { close: () => clearInterval(timer) };
}
