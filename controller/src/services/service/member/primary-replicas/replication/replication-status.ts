import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ReadReplicationResult, ReplicationPeer } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type ReplicationStatus, ReplicationStatusSchema, SyncState } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject, NodeSpec } from "../../../managed-service.ts";
import { readReplication } from "./read-replication.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { isWithoutLag, lagOf, positionsOf } from "./log-position.ts";
import { numberOf } from "../../members.ts";
import { isPrimary } from "../primary.ts";
import { nodeRoleOf } from "../../../managed-service-message.ts";

/**
 * Replication state by a query of primary and replicas; a node that does not respond is described by the others'
 * reports. Throws MACHINE_UNREACHABLE if no controller can reach one of them.
 */
export async function replicationStatus(
  service: ManagedServiceObject,
  node: NodeSpec,
  { fleet, clock }: { readonly fleet: Fleet; readonly clock: Clock },
  signal: AbortSignal,
): Promise<ReplicationStatus> {
  const { primaryNodeId } = service.status;
  const [primary, replica] = await Promise.all([
    readReplication(service, primaryNodeId, { fleet }, signal),
    isPrimary(service, node) ? undefined : readReplication(service, node.id, { fleet }, signal),
  ]);
  const peer = primary?.peers.find(({ number }) => number === numberOf(node));
  const common = { nodeId: node.id, role: nodeRoleOf(service, node), measuredAt: timestampFromMs(clock.now()) };
  if (isPrimary(service, node)) return create(ReplicationStatusSchema, { ...common, ...ofPrimary(primary) });
  const since = peer?.since ?? checkedSince(service, node);
  const state = stateOf(node, replica, peer, fleet.observation(node.id)?.instance.replication?.state ?? "");
  return create(ReplicationStatusSchema, {
    ...common,
    ...ofReplica(positionsOf(service), primary, replica, peer),
    syncState: state,
    connected: state === SyncState.STREAMING || state === SyncState.CATCHUP,
    ...(since && { since }),
  });
}

type Part = MessageInitShape<typeof ReplicationStatusSchema>;

function ofPrimary(primary: ReadReplicationResult | undefined): Part {
  if (primary === undefined) return { connected: false };
  const { position, timeline } = primary;
  return { lagBytes: 0n, lagSeconds: 0, connected: true, position, ...(timeline > 0 && { timeline }) };
}

/** A fully caught-up replica has no lag in bytes or seconds, even if the last commit is old. */
function ofReplica(
  positions: LogPositions,
  primary: ReadReplicationResult | undefined,
  replica: ReadReplicationResult | undefined,
  peer: ReplicationPeer | undefined,
): Part {
  const position = replica?.replayedPosition || peer?.replayedPosition;
  if (!position) return {};
  const timeline = replica === undefined || replica.timeline === 0 ? {} : { timeline: replica.timeline };
  if (primary === undefined) return { position, ...timeline };
  // The primary reports the positions of its peers in its own history.
  const replayed = { replayedPosition: position, history: replica?.history || primary.history };
  const lag = lagOf(positions, primary, replayed);
  const lagSeconds = isWithoutLag(lag) ? 0 : replica?.replayAgeSeconds;
  return {
    position,
    ...timeline,
    ...(lag.bytes !== undefined && { lagBytes: lag.bytes }),
    ...(lagSeconds !== undefined && { lagSeconds }),
  };
}

function stateOf(
  node: NodeSpec,
  replica: ReadReplicationResult | undefined,
  peer: ReplicationPeer | undefined,
  reportedState: string,
): SyncState {
  if (node.joining === true || reportedState === "copying" || reportedState === "starting") return SyncState.STARTING;
  if (peer === undefined) return replica?.streaming === true ? SyncState.STREAMING : SyncState.DISCONNECTED;
  // The kernel of a replica that hangs still acknowledges data, so the primary's report alone is not enough.
  if (replica?.streaming !== true) return SyncState.DISCONNECTED;
  return peer.state === "streaming" ? SyncState.STREAMING : SyncState.CATCHUP;
}

/** Time of the first health check that reported the replica as not connected. */
function checkedSince({ status }: ManagedServiceObject, { id }: NodeSpec): Timestamp | undefined {
  const check = status.health.checks.find(({ nodeId, status: level }) => nodeId === id && level !== "healthy");
  return check && timestampFromMs(check.since);
}
