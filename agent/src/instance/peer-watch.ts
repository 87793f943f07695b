import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../engines/engine-driver.ts";
import { ownMember } from "../engines/members.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { PeerData } from "./peer-data.ts";

const reportTimeoutMs = 3_000;

/** Membership of a running engine in its cluster. */
export interface PeerWatch {
  /** Sets the current report in the status and, at the leader, removes members that are to leave. */
  check(engine: DrivenInstance, signal: AbortSignal): Promise<void>;
  /** Throws a message for users if the cluster needs this member now. */
  requireSafeRestart(engine: DrivenInstance, signal: AbortSignal): Promise<void>;
}

export function createPeerWatch(deps: {
  readonly status: Pick<InstanceStatus, "setPeers">;
  readonly data: Pick<PeerData, "isMember">;
  readonly log: Log;
}): PeerWatch {
  return {
    async check({ driver, instance }, signal) {
      const { peers } = instance.spec;
      if (peers === undefined || driver.peers === undefined) return deps.status.setPeers(undefined);
      const limit = AbortSignal.any([signal, AbortSignal.timeout(reportTimeoutMs)]);
      try {
        const isMember = await deps.data.isMember(instance);
        const report = await driver.peers.report(instance, limit);
        deps.status.setPeers({ ...report, isMember });
        if (!report.isLeader || !report.quorum.hasMajority) return;
        // One change at a time: a cluster that loses two members at once may lose its majority.
        const next = peers.leaving.find((number) => report.members.includes(number));
        if (next !== undefined) await driver.peers.leave(instance, next, limit);
      } catch (error) {
        signal.throwIfAborted();
        // An earlier report would be taken for the current state.
        deps.status.setPeers(undefined);
        deps.log.warn("cluster not reported", {
          service: instance.spec.serviceId,
          reason: (error as Error).message,
        });
      }
    },
    async requireSafeRestart({ driver, instance }, signal) {
      if (instance.spec.peers === undefined || driver.peers === undefined) return;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(reportTimeoutMs)]);
      const { safeToRestart } = await driver.peers.report(instance, limit);
      const number = ownMember(instance)?.number ?? 0;
      if (!safeToRestart.includes(number))
        throw new Error("The restart waits: without this member the cluster has no majority, or lacks writes.");
    },
  };
}
