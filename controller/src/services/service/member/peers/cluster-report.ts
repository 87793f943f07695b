import type { PeersObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ObservedNode } from "../../reconcile/observed-service.ts";
import { numberOf } from "../members.ts";

/** The cluster as the members of its majority report it now. */
export interface ClusterReport {
  /** Node id of the elected leader. */
  readonly leader: string;
  /** Numbers of the members that vote, as the engine has them. */
  readonly members: readonly number[];
  /** Numbers of the members that do not vote yet. */
  readonly joining: readonly number[];
  /** Members that may stop now. Every member of the majority agrees on each of them. */
  readonly safeToRestart: readonly number[];
}

/** The member's own report, if it is one of its current engine. */
export function peerReportOf({ connected, isCurrent, instance }: ObservedNode): PeersObservation | undefined {
  return connected && isCurrent && instance?.state === "running" ? instance.peers : undefined;
}

/**
 * The cluster as its majority reports it. Undefined without a majority, and while reports contradict each other,
 * such as during an election.
 */
export function clusterReportOf(nodes: readonly ObservedNode[]): ClusterReport | undefined {
  const reports = nodes.flatMap(({ node, ...seen }) => {
    const peers = peerReportOf({ node, ...seen });
    return peers?.isMember === true && peers.hasMajority ? [{ node, peers }] : [];
  });
  const leaders = reports.filter(({ peers }) => peers.isLeader);
  const [leader] = leaders;
  if (leader === undefined || leaders.length > 1) return undefined;
  const { members, joining } = leader.peers;
  // Fewer reports than a majority may be those of a part that lost it since.
  const agreeing = reports.filter(({ node, peers }) => members.includes(numberOf(node)) && isSame(peers, leader.peers));
  if (2 * agreeing.length <= members.length) return undefined;
  const safeToRestart = members.filter((number) => agreeing.every(({ peers }) => peers.safeToRestart.includes(number)));
  return { leader: leader.node.id, members, joining, safeToRestart };
}

function isSame(a: PeersObservation, b: PeersObservation): boolean {
  return a.members.toSorted((x, y) => x - y).join() === b.members.toSorted((x, y) => x - y).join();
}
