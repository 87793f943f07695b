import type { PeersObservation } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import type { ObservedNode } from "../../reconcile/observed-service.ts";
import { numberOf } from "../members.ts";

/** State of the cluster, as the members of its majority report it. */
export interface ClusterReport {
  /** Node id of the elected leader. */
  readonly leader: string;
  /** Numbers of the voting members, by the engine's own list. */
  readonly members: readonly number[];
  /** Numbers of the members that do not vote yet. */
  readonly joining: readonly number[];
  /** Numbers of members that may stop now. Every member of the majority agrees. */
  readonly safeToRestart: readonly number[];
}

/** The member's report of the cluster; undefined unless the current engine runs and its agent is connected. */
export function clusterReportOfMember({ connected, isCurrent, instance }: ObservedNode): PeersObservation | undefined {
  return connected && isCurrent && instance?.state === "running" ? instance.peers : undefined;
}

/**
 * The cluster as its majority reports it. Undefined without a majority, and while reports contradict each other,
 * such as during an election.
 */
export function clusterReportOf(nodes: readonly ObservedNode[]): ClusterReport | undefined {
  const reports = nodes.flatMap(({ node, ...member }) => {
    const peers = clusterReportOfMember({ node, ...member });
    return peers?.isMember === true && peers.hasMajority ? [{ node, peers }] : [];
  });
  const leaders = reports.filter(({ peers }) => peers.isLeader);
  const [leader] = leaders;
  if (leader === undefined || leaders.length > 1) return undefined;
  const { members, joining } = leader.peers;
  // Without a majority of reports, the reporting members may have lost the majority since.
  const agreeing = reports.filter(({ node, peers }) => members.includes(numberOf(node)) && isSame(peers, leader.peers));
  if (2 * agreeing.length <= members.length) return undefined;
  const safeToRestart = members.filter((number) => agreeing.every(({ peers }) => peers.safeToRestart.includes(number)));
  return { leader: leader.node.id, members, joining, safeToRestart };
}

function isSame(a: PeersObservation, b: PeersObservation): boolean {
  return a.members.toSorted((x, y) => x - y).join() === b.members.toSorted((x, y) => x - y).join();
}
