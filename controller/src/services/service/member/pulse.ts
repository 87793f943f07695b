import type { Fleet } from "#fleet/fleet.ts";
import { type HeardRight, punctualMs } from "#fleet/session/rights.ts";

/** Failure detection of primaries by this controller: the age of lease requests, and durations of observed facts. */
export interface FailureDetector {
  /**
   * Last lease request of the machine's agent. A request to another controller counts by that controller's report. If
   * the agent is connected to no controller, its silence counts from the first call.
   */
  leaseReport(machineId: string): HeardRight | undefined;
  /** Milliseconds since the first call with this fact; the first call returns 0. */
  trueForMs(fact: string): number;
  /** Ends a fact, so that the next call starts again at 0. */
  forget(fact: string): void;
}

const maxFacts = 10_000;

export function createPulse(
  fleet: Pick<Fleet, "heardRight" | "silentElsewhere" | "session">,
  controllerId: string,
  bootMs: () => number,
): FailureDetector {
  const firstSeen = new Map<string, number>();

  function trueForMs(fact: string): number {
    const now = bootMs();
    const since = firstSeen.get(fact) ?? now;
    if (!firstSeen.has(fact)) firstSeen.set(fact, since);
    // Facts of deleted services are never removed, so the oldest go first.
    if (firstSeen.size > maxFacts)
      for (const [oldest] of [...firstSeen].slice(0, maxFacts / 10)) firstSeen.delete(oldest);
    return now - since;
  }

  return {
    leaseReport(machineId) {
      const here = fleet.heardRight(machineId);
      const session = fleet.session(machineId);
      const fact = `silent ${machineId}`;
      const isElsewhere = session !== undefined && session.controllerId !== controllerId;
      if (isElsewhere || (here !== undefined && here.askedAgoMs < punctualMs)) firstSeen.delete(fact);
      if (isElsewhere) {
        const { askedAgoMs = 0, isEngineSilent = false } = fleet.silentElsewhere(machineId) ?? {};
        return { askedAgoMs, grantedAgoMs: here?.grantedAgoMs, isEngineSilent };
      }
      if (here !== undefined) return here;
      return { askedAgoMs: trueForMs(fact), grantedAgoMs: undefined, isEngineSilent: false };
    },
    trueForMs,
    forget: (fact) => {
      firstSeen.delete(fact);
    },
  };
}
