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
import { isPrimary, standbysOf } from "../primary.ts";
import { follows } from "../follows.ts";

type ReplicationReport = Pick<
  ReadReplicationResult,
  "role" | "streaming" | "silentMs" | "history" | "position" | "peers"
>;

/** Interval of queries while a replica is to be proven. */
export const proofIntervalMs = 2_000;

/**
 * Marks the replicas that may become failover candidates and provably follow. A replica that was paused reports its
 * state from before the pause, so primary and replica are both queried now: the primary must list the replica as one
 * that receives.
 */
export async function withProvenReplicas(
  service: ManagedServiceObject,
  observed: ObservedService,
  deps: { readonly fleet: Pick<Fleet, "run">; readonly failureDetector: Pick<FailureDetector, "leaseReport"> },
  signal: AbortSignal,
): Promise<ObservedService> {
  const candidates = nextVoters(service, observed);
  const { primaryNodeId } = service.status;
  // A query of a suspect primary would only take time.
  const leaseReport = candidates.length === 0 ? undefined : deps.failureDetector.leaseReport(primaryNodeId);
  if (leaseReport === undefined || isSuspect(leaseReport)) return observed;
  const ids = [primaryNodeId, ...candidates.map(({ node }) => node.id)];
  const answers = await Promise.all(ids.map((id) => tryReadReplication(service, id, deps, signal)));
  const responses = new Map(ids.map((id, index) => [id, answers[index]]));
  const positions = positionsOf(service);
  const nodes = observed.nodes.map((each) =>
    candidates.includes(each) &&
    isProven(positions, each.node, responses.get(primaryNodeId), responses.get(each.node.id))
      ? { ...each, isProven: true as const }
      : each,
  );
  return { ...observed, nodes };
}

/** The replicas that become failover candidates once they are proven to follow. */
export function nextVoters(service: ManagedServiceObject, observed: ObservedService): ObservedNode[] {
  if (!canChangeVoters(service, observed)) return [];
  const ids = standbysOf(service).flatMap(({ id, failoverCandidate }) => (failoverCandidate === undefined ? [id] : []));
  return observed.nodes.filter((each) => ids.includes(each.node.id) && follows(each));
}

/**
 * True if replicas may gain and lose failover candidacy: the primary is connected and ends with its lease, and
 * neither a primary change nor a canary is in progress.
 */
export function canChangeVoters(service: ManagedServiceObject, observed: ObservedService): boolean {
  const primary = observed.nodes.find(({ node }) => isPrimary(service, node));
  const isThere = primary?.connected === true && fencedGenerationOf(primary.instance) > 0;
  return service.spec.primaryChange === undefined && service.spec.canary === undefined && isThere;
}

/**
 * True if the replica receives what its primary writes and has nothing else, by the current reports of both.
 */
export function isProven(
  positions: LogPositions,
  node: NodeSpec,
  primary: ReplicationReport | undefined,
  own: ReplicationReport | undefined,
): boolean {
  if (primary?.role !== "primary" || own?.role !== "replica") return false;
  const peer = primary.peers.find(({ number }) => number === numberOf(node));
  const isReceiving = own.streaming && Number(own.silentMs) < replicationSilentAfterMs;
  const isSame = own.history === primary.history && positions.compare(own.position, primary.position) !== "diverged";
  return isReceiving && peer?.state === "streaming" && isSame;
}
