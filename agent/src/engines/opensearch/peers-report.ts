import type { PeersReport } from "../peers-facet.ts";
import type { ClusterView, Shard } from "./cluster-view.ts";

/** The cluster's state as one member has it. */
export interface ClusterState {
  /** Number of the member that reports. */
  readonly number: number;
  /** Numbers of the members that are removed. */
  readonly leaving: readonly number[];
  readonly cluster: ClusterView;
  /** True if the index of a shard has no complete copy. */
  readonly lacksData: boolean;
  /** Shards whose copies are incomplete or move, at least. */
  readonly shards: readonly Shard[];
}

/**
 * The member's report, without the progress of removals. A member may restart if the others have a majority without it,
 * and if all copies of each of its shards are complete for which the members have a place: no acknowledged write then
 * depends on it alone. An index without replicas lacks the shards of a member while that restarts.
 */
export function peersReportOf({ number, leaving, cluster, lacksData, shards }: ClusterState): PeersReport {
  const { leader, nodes, voters, excluded } = cluster;
  const isOut = (each: number) => excluded.includes(each);
  const present = nodes.map((each) => each.number).filter((each) => !isOut(each));
  const members = (cluster.members ?? present).toSorted((a, b) => a - b);
  const reachable = nodes.filter(({ id }) => voters.includes(id));
  const hasMajority = leader !== undefined;
  const own = nodes.find((each) => each.number === number)?.id;
  const staying = nodes.filter((each) => !leaving.includes(each.number)).length;
  const isSpare = (each: number) => {
    const id = nodes.find((node) => node.number === each)?.id;
    const others = reachable.filter((node) => node.number !== each).length;
    if (voters.length > 1 ? 2 * others <= voters.length : others === 0 && members.length > 1) return false;
    return id === undefined || shards.every((shard) => isCompleteWithout(shard, id, staying));
  };
  return {
    isLeader: leader === number,
    quorum: { voters: voters.length, reachable: reachable.length, hasMajority },
    inSync: hasMajority && own !== undefined && !lacksData && shards.every(({ filling }) => !filling.includes(own)),
    members,
    joining: present.filter((each) => !members.includes(each) && !leaving.includes(each)),
    safeToRestart: hasMajority && !lacksData ? members.filter(isSpare) : [],
    leaving: [],
  };
}

/** True if the member has no copy, or one that does not move while all possible copies are complete. */
function isCompleteWithout({ copies, complete, moving, filling }: Shard, id: string, staying: number): boolean {
  if (filling.includes(id) || moving.includes(id)) return false;
  return !complete.includes(id) || complete.length >= Math.min(copies, staying);
}
