import type { Log } from "@holdfast/common/log.ts";
import type { DrivenInstance } from "../../engines/engine-driver.ts";
import { ownMember } from "../../engines/members.ts";
import type { PeersReport } from "../../engines/peers-facet.ts";
import type { InstanceStatus } from "./instance-status.ts";
import type { PeerData } from "./peer-data.ts";

const reportTimeoutMs = 3_000;

/** Membership of a running engine in its cluster. */
export interface PeerWatch {
  /** Sets the report in the status, has a member that joins vote, and, at the leader, removes members and balances. */
  check(engine: DrivenInstance, signal: AbortSignal): Promise<void>;
  /** Throws a message for users if the cluster needs this member now, and the other members are to run. */
  requireSafeStop(engine: DrivenInstance, signal: AbortSignal): Promise<void>;
}

export function createPeerWatch(deps: {
  readonly status: Pick<InstanceStatus, "setPeers">;
  readonly data: Pick<PeerData, "isMember">;
  readonly log: Log;
}): PeerWatch {
  async function settleMembers({ driver, instance }: DrivenInstance, report: PeersReport, signal: AbortSignal) {
    const { members, joining = [] } = report;
    if (joining.includes(ownMember(instance)?.number ?? 0)) await driver.peers?.admit?.(instance, signal);
    if (!report.isLeader || !report.quorum.hasMajority) return;
    // One change at a time: a cluster that loses two members together may lose its majority.
    const isHere = (number: number) => members.includes(number) || joining.includes(number);
    const next = instance.spec.peers?.leaving.find(isHere);
    if (next !== undefined) return driver.peers?.leave(instance, next, signal);
    if (joining.length === 0) await driver.peers?.balance?.(instance, signal);
  }

  return {
    async check(engine, signal) {
      const { driver, instance } = engine;
      const { peers, serviceId: service } = instance.spec;
      if (peers === undefined || driver.peers === undefined) return deps.status.setPeers(undefined);
      const limit = AbortSignal.any([signal, AbortSignal.timeout(reportTimeoutMs)]);
      let report: PeersReport;
      try {
        report = await driver.peers.report(instance, limit);
        deps.status.setPeers({ ...report, isMember: await deps.data.isMember(instance) });
      } catch (error) {
        signal.throwIfAborted();
        // An earlier report would be taken for the current state.
        deps.status.setPeers(undefined);
        deps.log.warn("cluster state not read", { service, reason: (error as Error).message });
        return;
      }
      try {
        await settleMembers(engine, report, limit);
      } catch (error) {
        signal.throwIfAborted();
        deps.log.warn("membership change failed", { service, reason: (error as Error).message });
      }
    },
    async requireSafeStop({ driver, instance }, signal) {
      if (instance.spec.peers?.othersRun !== true || driver.peers === undefined) return;
      const limit = AbortSignal.any([signal, AbortSignal.timeout(reportTimeoutMs)]);
      const { members, safeToRestart } = await driver.peers.report(instance, limit);
      const number = ownMember(instance)?.number ?? 0;
      // Nothing depends on a member that does not vote.
      if (members.includes(number) && !safeToRestart.includes(number))
        throw new Error("The stop waits: without this member the cluster has no majority, or lacks writes.");
    },
  };
}
