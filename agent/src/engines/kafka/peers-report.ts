import type { PeersReport } from "../peers-facet.ts";
import type { Partition, Quorum } from "./cluster-view.ts";

/** The cluster's state as one member sees it. */
export interface ClusterState {
  /** Number of the member that reports. */
  readonly number: number;
  /** Numbers of the members that are removed. */
  readonly leaving: readonly number[];
  readonly quorum: Quorum | undefined;
  readonly brokers: readonly number[];
  readonly partitions: readonly Partition[];
}

/**
 * The member's report, without the progress of removals. A member may restart if the others have a majority, and if
 * each partition of which it has a replica is complete on all other replicas: no acknowledged record then depends on it
 * alone, and writes continue wherever the minimum of in-sync replicas is less than their number.
 */
export function peersReportOf({ number, leaving, quorum, brokers, partitions }: ClusterState): PeersReport {
  if (quorum === undefined)
    return {
      isLeader: false,
      quorum: { voters: 0, reachable: 0, hasMajority: false },
      inSync: false,
      members: [],
      joining: [],
      safeToRestart: [],
      leaving: [],
    };
  const joining = quorum.observers.map((each) => each.number).filter((each) => !leaving.includes(each));
  // A voter that also reads without a vote has lost its disk.
  const voters = quorum.voters.filter((each) => !joining.includes(each.number));
  const reachable = voters.filter(({ isReachable }) => isReachable).map((each) => each.number);
  const hasMajority = 2 * reachable.length > quorum.voters.length;
  const numbers = voters.map((each) => each.number);
  const isSpare = (each: number) =>
    quorum.voters.length === 1 ||
    (2 * reachable.filter((other) => other !== each).length > quorum.voters.length &&
      partitions.every((partition) => isCompleteWithout(partition, each)));
  return {
    isLeader: quorum.leader === number,
    quorum: { voters: quorum.voters.length, reachable: reachable.length, hasMajority },
    inSync: hasMajority && brokers.includes(number) && partitions.every((partition) => isInSync(partition, number)),
    members: numbers,
    joining,
    safeToRestart: hasMajority ? numbers.filter(isSpare) : [],
    leaving: [],
  };
}

/** True if all other replicas of the partition are in sync, or if the member has none. */
function isCompleteWithout({ replicas, inSync }: Partition, number: number): boolean {
  return !replicas.includes(number) || replicas.every((each) => each === number || inSync.includes(each));
}

function isInSync({ replicas, inSync }: Partition, number: number): boolean {
  return !replicas.includes(number) || inSync.includes(number);
}
