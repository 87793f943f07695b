import type { Fleet } from "#fleet/fleet.ts";
import { type LeaseReport, requestOverdueMs } from "#fleet/session/primary-leases.ts";

/** Failure detection of primaries by this controller: the age of lease requests, and durations of observed facts. */
export interface FailureDetector {
  /**
   * The last lease request of the machine's agent, to this controller or (by that controller's report) to another. The
   * silence of an agent without a connection is measured from the first call.
   */
  leaseReport(machineId: string): LeaseReport | undefined;
  /** Milliseconds since the first call with this fact; the first call returns 0. */
  trueForMs(fact: string): number;
  /** Resets a fact, so that the next `trueForMs` returns 0. */
  forget(fact: string): void;
}

const maxFacts = 10_000;

export function createFailureDetector(
  fleet: Pick<Fleet, "leaseReport" | "controllerLeaseReport" | "session">,
  controllerId: string,
  bootMs: () => number,
): FailureDetector {
  const firstSeen = new Map<string, number>();

  function trueForMs(fact: string): number {
    const now = bootMs();
    const since = firstSeen.get(fact) ?? now;
    if (!firstSeen.has(fact)) firstSeen.set(fact, since);
    // Facts of deleted services are not removed otherwise, so the oldest are evicted.
    if (firstSeen.size > maxFacts)
      for (const [oldest] of [...firstSeen].slice(0, maxFacts / 10)) firstSeen.delete(oldest);
    return now - since;
  }

  return {
    leaseReport(machineId) {
      const here = fleet.leaseReport(machineId);
      const session = fleet.session(machineId);
      const fact = `silent ${machineId}`;
      const isElsewhere = session !== undefined && session.controllerId !== controllerId;
      if (isElsewhere || (here !== undefined && here.requestedAgoMs < requestOverdueMs)) firstSeen.delete(fact);
      if (isElsewhere) {
        const { requestedAgoMs = 0, isEngineUnresponsive = false } = fleet.controllerLeaseReport(machineId) ?? {};
        return { requestedAgoMs, grantedAgoMs: here?.grantedAgoMs, isEngineUnresponsive };
      }
      if (here !== undefined) return here;
      return { requestedAgoMs: trueForMs(fact), grantedAgoMs: undefined, isEngineUnresponsive: false };
    },
    trueForMs,
    forget: (fact) => {
      firstSeen.delete(fact);
    },
  };
}
