import { primaryLeaseMs } from "@holdfast/common/primary-lease.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { cacheMaxAgeMs, primaryLeaseMarginMs } from "#fleet/session/primary-leases.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { silentAfterMs } from "./suspicion.ts";
import type { MemberState } from "../primary-change-plan.ts";

/** Time without an eligible successor after which the old primary is named again. */
export const fenceTimeoutMs = 30_000;
/** Time after which a granted lease has expired for certain, whatever clocks and pauses there are. */
export const leaseExpiredAfterMs = primaryLeaseMs + primaryLeaseMarginMs;

/** A controller's view of the old primary's lease, in durations of its own clock. */
export interface LeaseState {
  /** Time for which this controller has known the revocation. */
  readonly revokedForMs: number;
  /**
   * Time for which no controller has granted the lease, and none can any more; undefined while a controller has not
   * confirmed that.
   */
  readonly ungrantedForMs: number | undefined;
  /**
   * The machine's host has ended all its processes after every controller refused the lease: no earlier lease counts,
   * and processes that started since get none.
   */
  readonly isProven?: boolean;
  /**
   * The lease's deadline is by a clock that stops with the machine, as that of a virtual machine: no time proves that
   * it has expired.
   */
  readonly neverExpires?: boolean;
}

/** A replica's response to a query of its replication state. */
export interface Candidate {
  readonly nodeId: string;
  readonly timeline: number;
  /** Positions of different histories cannot be compared; empty where timelines tell histories apart. */
  readonly history?: string;
  /** Received position. */
  readonly position: string;
  /** Time for which the position has not changed. */
  readonly unchangedMs: number;
  readonly streaming: boolean;
  /** Queried for its position only: it is no failover candidate. */
  readonly comparisonOnly?: boolean;
  /**
   * A failover candidate that the old primary's agent may not count, for example after a restart. It is named only
   * after the old primary has certainly ended.
   */
  readonly isNotCounted?: boolean;
}

/** A replica's report of its replication state. */
export interface ReplicaResponse
  extends Pick<ReadReplicationResult, "timeline" | "history" | "position" | "streaming" | "unchangedMs"> {
  readonly nodeId: string;
}

/** The replica as a candidate. `failoverCandidates`, `counted`: ids of nodes, as `Candidate` explains them. */
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
 * True if granted leases have expired. A controller that has not acknowledged the revocation may learn of it up
 * to `knownWithinMs` later, and may grant the lease until then.
 */
export function isLeaseExpired({ revokedForMs, ungrantedForMs = 0, neverExpires = false }: LeaseState): boolean {
  if (neverExpires) return false;
  return revokedForMs >= cacheMaxAgeMs + leaseExpiredAfterMs || ungrantedForMs >= leaseExpiredAfterMs;
}

/** Time in which an agent that still answers may stop its engine, before the host ends the whole machine. */
const selfFenceGraceMs = 2_000;

/**
 * True if the host should end the old primary's machine. Every controller must refuse the lease first, because
 * the machine may start again. `requestedAgoMs`: time since its agent requested the lease.
 */
export function shouldFence({ revokedForMs, ungrantedForMs }: LeaseState, requestedAgoMs: number): boolean {
  return (
    ungrantedForMs !== undefined && (requestedAgoMs - revokedForMs >= silentAfterMs || revokedForMs >= selfFenceGraceMs)
  );
}

/**
 * The successor of a silent primary. Its engine has ended for certain if its agent reports that under the new
 * settings, if the host has ended its machine, or if its lease has expired and no failover candidate can have confirmed
 * it since, because a replica that receives nothing confirms nothing. `candidates`: the replicas that responded, with
 * positions that `positions` compares. `needed`: every acknowledged commit is on one of these, so all must have
 * responded; undefined if commits wait for no replica. `forced`: only this replica is named, even if it lacks data.
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
  // An operator accepts lost data, but not a primary that may renew its lease through the other replicas.
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
  // The old primary runs behind a network that it shares with its members, or has ended where no replica can replace
  // it.
  const isAlive = from.answers || candidates.some(({ streaming }) => streaming);
  return isAlive ? { kind: "revert" } : { kind: "wait" };
}

/**
 * A replica is not named while another one that responds has data that it lacks, has a newer timeline, or has another
 * history.
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
