import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject, NodeSpec } from "../../../managed-service.ts";
import type { ObservedNode, ObservedService } from "../../../reconcile/observed-service.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { positionsOf } from "./log-position.ts";
import { tryReadReplication } from "./read-replication.ts";
import { numberOf } from "../../members.ts";
import type { FailureDetector } from "../failover/failure-detector.ts";
import { replicationSilentAfterMs, fencedGenerationOf, isSuspect } from "../failover/suspicion.ts";
import { follows, isPrimary, standbysOf } from "../primary.ts";

type ReplicationReport = Pick<
  ReadReplicationResult,
  "role" | "streaming" | "silentMs" | "history" | "timeline" | "position" | "peers"
>;

/** Interval of queries while a replica awaits its proof. */
export const proofIntervalMs = 2_000;

/**
 * Marks the replicas that may become failover candidates and are proven to follow, and the synchronous standbys that
 * have all commits while the beginning of the wait for them is unconfirmed. A paused replica reports its state from
 * before the pause, so primary and replica are both queried: the primary must list the replica as receiving.
 */
export async function withProvenReplicas(
  service: ManagedServiceObject,
  observed: ObservedService,
  deps: { readonly fleet: Pick<Fleet, "run">; readonly failureDetector: Pick<FailureDetector, "leaseReport"> },
  signal: AbortSignal,
): Promise<ObservedService> {
  const candidates = nextVoters(service, observed);
  const standbys = unconfirmedStandbys(service, observed);
  const queried = observed.nodes.filter((each) => candidates.includes(each) || standbys.includes(each));
  const { primaryNodeId } = service.status;
  // A suspect primary is not queried: it would probably not respond.
  const leaseReport = queried.length === 0 ? undefined : deps.failureDetector.leaseReport(primaryNodeId);
  if (leaseReport === undefined || isSuspect(leaseReport)) return observed;
  // The primary first: under writes, a position that was read before it would lack its newest commits.
  const primary = await tryReadReplication(service, primaryNodeId, deps, signal);
  const results = await Promise.all(queried.map(({ node }) => tryReadReplication(service, node.id, deps, signal)));
  const positions = positionsOf(service);
  const nodes = observed.nodes.map((each): ObservedNode => {
    const replica = results[queried.indexOf(each)];
    return {
      ...each,
      ...(candidates.includes(each) && isProven(positions, each.node, primary, replica) && { isProven: true }),
      ...(standbys.includes(each) && hasAllCommits(positions, primary, replica) && { hasAllCommits: true }),
    };
  });
  return { ...observed, nodes };
}

/**
 * The standbys that commits wait for, while the beginning of the wait is unconfirmed and the primary runs with the
 * settings of the wait. A standby may still lack commits that were acknowledged before.
 */
export function unconfirmedStandbys(
  { spec, status }: ManagedServiceObject,
  { nodes }: ObservedService,
): ObservedNode[] {
  const { unconfirmedSyncGeneration: unconfirmed, syncStandbys = [] } = spec;
  const primary = nodes.find(({ node }) => isPrimary({ status }, node));
  if (unconfirmed === undefined || primary?.connected !== true || !primary.isCurrent) return [];
  const { state, generation = 0n } = primary.instance ?? {};
  if (state !== "running" || Number(generation) < unconfirmed) return [];
  return nodes.filter(({ node }) => syncStandbys.includes(node.id));
}

/** True if the replica has everything that the primary had committed when it was queried. */
function hasAllCommits(
  positions: LogPositions,
  primary: ReplicationReport | undefined,
  replica: ReplicationReport | undefined,
): boolean {
  if (primary?.role !== "primary" || replica?.role !== "replica" || !replica.streaming) return false;
  // Positions of different histories are not comparable.
  if (replica.history !== primary.history || replica.timeline !== primary.timeline) return false;
  return ["same", "after"].includes(positions.compare(replica.position, primary.position));
}

/** The replicas that become failover candidates, and thus voters, once they are proven to follow. */
export function nextVoters(service: ManagedServiceObject, observed: ObservedService): ObservedNode[] {
  if (!canChangeVoters(service, observed)) return [];
  const ids = standbysOf(service).flatMap(({ id, failoverCandidate }) => (failoverCandidate === undefined ? [id] : []));
  return observed.nodes.filter((each) => ids.includes(each.node.id) && follows(each));
}

/**
 * True if replicas may gain and lose failover candidacy: the primary is connected and stops when its lease expires, and
 * neither a primary change nor a canary is in progress.
 */
export function canChangeVoters(service: ManagedServiceObject, observed: ObservedService): boolean {
  const primary = observed.nodes.find(({ node }) => isPrimary(service, node));
  const isThere = primary?.connected === true && fencedGenerationOf(primary.instance) > 0;
  return service.spec.primaryChange === undefined && service.spec.canary === undefined && isThere;
}

/**
 * True if, by the current reports of both, the replica receives the primary's log and has no other log.
 */
export function isProven(
  positions: LogPositions,
  node: NodeSpec,
  primary: ReplicationReport | undefined,
  replica: ReplicationReport | undefined,
): boolean {
  if (primary?.role !== "primary" || replica?.role !== "replica") return false;
  const peer = primary.peers.find(({ number }) => number === numberOf(node));
  const isReceiving = replica.streaming && Number(replica.silentMs) < replicationSilentAfterMs;
  const isSame =
    replica.history === primary.history && positions.compare(replica.position, primary.position) !== "diverged";
  return isReceiving && peer?.state === "streaming" && isSame;
}
