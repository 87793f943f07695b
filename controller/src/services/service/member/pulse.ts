import type { Fleet } from "#fleet/fleet.ts";
import { type HeardRight, punctualMs } from "#fleet/session/rights.ts";

/** How primaries are heard of by this controller, and for how long it has known what it knows. */
export interface Pulse {
  /**
   * What is known of the primary's agent: one that asks another controller is as silent as that one tells. Never
   * undefined for an agent that is nowhere: its silence counts from when this was asked first.
   */
  heard(machineId: string): HeardRight | undefined;
  /** For how many milliseconds this controller has known this; asking begins it. */
  knownForMs(fact: string): number;
  /** Facts that are over, which may be true again. */
  forget(fact: string): void;
}

const mostFacts = 10_000;

export function createPulse(
  fleet: Pick<Fleet, "heardRight" | "silentElsewhere" | "session">,
  controllerId: string,
  bootMs: () => number,
): Pulse {
  const known = new Map<string, number>();

  function knownForMs(fact: string): number {
    const now = bootMs();
    const since = known.get(fact) ?? now;
    if (!known.has(fact)) known.set(fact, since);
    // Those of services that are gone: the oldest go first.
    if (known.size > mostFacts) for (const [oldest] of [...known].slice(0, mostFacts / 10)) known.delete(oldest);
    return now - since;
  }

  return {
    heard(machineId) {
      const here = fleet.heardRight(machineId);
      const session = fleet.session(machineId);
      const fact = `silent ${machineId}`;
      const isElsewhere = session !== undefined && session.controllerId !== controllerId;
      if (isElsewhere || (here !== undefined && here.askedAgoMs < punctualMs)) known.delete(fact);
      if (isElsewhere) {
        const { askedAgoMs = 0, isEngineSilent = false } = fleet.silentElsewhere(machineId) ?? {};
        return { askedAgoMs, grantedAgoMs: here?.grantedAgoMs, isEngineSilent };
      }
      if (here !== undefined) return here;
      return { askedAgoMs: knownForMs(fact), grantedAgoMs: undefined, isEngineSilent: false };
    },
    knownForMs,
    forget: (fact) => {
      known.delete(fact);
    },
  };
}
