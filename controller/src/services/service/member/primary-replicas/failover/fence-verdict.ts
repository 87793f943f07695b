import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { cacheMaxAgeMs, primaryLeaseMarginMs } from "#fleet/session/primary-leases.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { silentAfterMs } from "./suspicion.ts";
import type { MemberState } from "../primary-change-plan.ts";

/** Time without an eligible successor after which a living old primary is named again. */
export const fenceTimeoutMs = 30_000;
/** Time after which a granted lease has certainly expired, including the margin for clock drift and pauses. */
export const leaseExpiredAfterMs = primaryLeaseMs + primaryLeaseMarginMs;

/** A controller's view of the old primary's lease, in durations by the controller's clock. */
export interface LeaseState {
  /** Time since this controller learned of the revocation, in milliseconds. */
  readonly revokedForMs: number;
  /**
   * Time since any controller could last grant the lease, in milliseconds; undefined until all controllers have
   * confirmed the revocation.
   */
  readonly ungrantedForMs: number | undefined;
  /**
   * True if the machine's host has ended all processes after every controller refused the lease. Earlier leases no
   * longer matter then, and new processes get no lease.
   */
  readonly isProven?: boolean;
  /**
   * True if the lease's deadline is by a clock that can stop, such as a virtual machine's. No elapsed time proves then
   * that the lease has expired.
   */
  readonly neverExpires?: boolean;
}

/** A replica's response to a query of its replication state. */
export interface Candidate {
  readonly nodeId: string;
  readonly timeline: number;
  /** History of the position: positions of different histories cannot be compared. Empty for engines with timelines. */
  readonly history?: string;
  /** Received position. */
  readonly position: string;
  /** Time since the position last changed, in milliseconds. */
  readonly unchangedMs: number;
  readonly streaming: boolean;
  /** True for a replica that is not a failover candidate, and was queried only to compare positions. */
  readonly comparisonOnly?: boolean;
  /**
   * True for a failover candidate that the old primary's agent may not count as a voter, for example after a restart.
   * It is named only after the old primary has certainly ended.
   */
  readonly isNotCounted?: boolean;
}

/** A replica's report of its replication state. */
export interface ReplicaResponse
  extends Pick<ReadReplicationResult, "timeline" | "history" | "position" | "streaming" | "unchangedMs"> {
  readonly nodeId: string;
}

/**
 * The replica as a candidate. `failoverCandidates`, `counted`: ids of the nodes that are candidates, and counted ones.
 */
export function candidateOf(
  { nodeId, timeline, history, position, streaming, unchangedMs }: ReplicaResponse,
  failoverCandidates: readonly string[],
  counted: readonly string[],
): Candidate {
  return {
    nodeId,
    timeline,
    history,
    position,
    unchangedMs: Number(unchangedMs),
    streaming,
    comparisonOnly: !failoverCandidates.includes(nodeId),
    isNotCounted: !counted.includes(nodeId),
  };
}

/** Result of a check of a fence. */
export type FenceVerdict =
  | { readonly kind: "wait" }
  | { readonly kind: "name"; readonly nodeId: string }
  /** No replica can be named: the old primary is named again. */
  | { readonly kind: "revert" };

/**
 * True if all granted leases have expired. A controller that has not confirmed the revocation may grant the lease for
 * up to `cacheMaxAgeMs` longer, the maximum age of its cache.
 */
export function isLeaseExpired({ revokedForMs, ungrantedForMs = 0, neverExpires = false }: LeaseState): boolean {
  if (neverExpires) return false;
  return revokedForMs >= cacheMaxAgeMs + leaseExpiredAfterMs || ungrantedForMs >= leaseExpiredAfterMs;
}

/** Time in which a connected agent may stop its engine in order, before the host ends all processes of the machine. */
const selfFenceGraceMs = 2_000;

/**
 * True if the host should end the old primary's machine. Every controller must refuse the lease first, because
 * the machine may start again. `requestedAgoMs`: time since its agent last requested the lease.
 */
export function shouldFence({ revokedForMs, ungrantedForMs }: LeaseState, requestedAgoMs: number): boolean {
  return (
    ungrantedForMs !== undefined && (requestedAgoMs - revokedForMs >= silentAfterMs || revokedForMs >= selfFenceGraceMs)
  );
}

/**
 * The successor of a silent primary. The primary certainly takes no writes if its agent reports a stopped engine under
 * the new settings, if the host has ended its machine, or if its lease has expired and no failover candidate has
 * received data, and thus can have confirmed the lease, since. `candidates`: the replicas that responded, with
 * positions that `positions` compares. `needed`: ids of replicas that together have every acknowledged commit, so all
 * of them must have responded; undefined if commits do not wait for replicas. `forced`: only this replica is named,
 * even if it lacks data.
 */
export function fenceVerdict(
  from: MemberState,
  lease: LeaseState,
  candidates: readonly Candidate[],
  positions: LogPositions,
  needed?: readonly string[],
  forced?: string,
): FenceVerdict {
  const hasEnded =
    lease.isProven === true || (from.hasNewestSettings && from.engine !== "writes" && from.engine !== "unknown");
  const isOut = hasEnded || isLeaseExpired(lease);
  const isComplete =
    needed === undefined || (needed.length > 0 && needed.every((id) => candidates.some(({ nodeId }) => nodeId === id)));
  const eligible = candidates.filter(
    ({ unchangedMs, comparisonOnly, isNotCounted }) =>
      isOut &&
      isComplete &&
      comparisonOnly !== true &&
      (hasEnded || (isNotCounted !== true && unchangedMs >= leaseExpiredAfterMs)),
  );
  // An operator accepts lost data, but not two primaries: other replicas must not be able to renew the old one's lease.
  const chosen = () =>
    candidates.find(
      ({ nodeId, unchangedMs, comparisonOnly, isNotCounted }) =>
        nodeId === forced &&
        isOut &&
        (hasEnded || (comparisonOnly !== true && isNotCounted !== true && unchangedMs >= leaseExpiredAfterMs)),
    );
  const best = forced === undefined ? mostAdvanced(eligible, candidates, positions) : chosen();
  if (best !== undefined) return { kind: "name", nodeId: best.nodeId };
  if (lease.revokedForMs < fenceTimeoutMs) return { kind: "wait" };
  // Either the old primary runs, reachable for its replicas but not for controllers, or it has ended and no replica can
  // replace it.
  const isAlive = from.isConnected || candidates.some(({ streaming }) => streaming);
  return isAlive ? { kind: "revert" } : { kind: "wait" };
}

/**
 * The most advanced eligible replica; undefined if a replica that responded has data that it lacks, a newer timeline,
 * or another history.
 */
function mostAdvanced(
  eligible: readonly Candidate[],
  all: readonly Candidate[],
  positions: LogPositions,
): Candidate | undefined {
  const lacks = (candidate: Candidate, another: Candidate) => {
    const order = positions.compare(candidate.position, another.position);
    return order === "before" || order === "diverged";
  };
  const isBehind = (candidate: Candidate, another: Candidate) =>
    candidate.timeline < another.timeline ||
    candidate.history !== another.history ||
    (candidate.timeline === another.timeline && lacks(candidate, another));
  return eligible.find((candidate) => !all.some((another) => isBehind(candidate, another)));
}
