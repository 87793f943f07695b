import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Timestamp, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ReadReplicationResult, ReplicationPeer } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type ReplicationStatus, ReplicationStatusSchema, SyncState } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { roleOf } from "../managed-service-message.ts";
import { replicationOf } from "./ask-replication.ts";
import { lagOf } from "./log-position.ts";
import { isPrimary, numberOf } from "./members.ts";

/**
 * Asks both ends now; each tells what it knows of a silent other one. Throws MACHINE_UNREACHABLE when one of them could
 * not be asked.
 */
export async function replicationStatus(
  service: ManagedServiceObject,
  node: NodeSpec,
  { fleet, clock }: { readonly fleet: Fleet; readonly clock: Clock },
  signal: AbortSignal,
): Promise<ReplicationStatus> {
  const { primaryNodeId } = service.status;
  const [primary, own] = await Promise.all([
    replicationOf(service, primaryNodeId, { fleet }, signal),
    isPrimary(service, node) ? undefined : replicationOf(service, node.id, { fleet }, signal),
  ]);
  const peer = primary?.peers.find(({ number }) => number === numberOf(node));
  const common = { nodeId: node.id, role: roleOf(service, node), measuredAt: timestampFromMs(clock.now()) };
  if (isPrimary(service, node)) return create(ReplicationStatusSchema, { ...common, ...ofPrimary(primary) });
  const since = peer?.since ?? checkedSince(service, node);
  const state = stateOf(node, own, peer, fleet.observation(node.id)?.instance.replication?.state ?? "");
  return create(ReplicationStatusSchema, {
    ...common,
    ...ofReplica(primary, own, peer),
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

/** Who has all of it lacks nothing, however long ago the last commit was. */
function ofReplica(
  primary: ReadReplicationResult | undefined,
  own: ReadReplicationResult | undefined,
  peer: ReplicationPeer | undefined,
): Part {
  const position = own?.replayedPosition || peer?.replayedPosition;
  if (!position) return {};
  const timeline = own === undefined || own.timeline === 0 ? {} : { timeline: own.timeline };
  if (primary === undefined) return { position, ...timeline };
  // The primary counts its peers' positions in its own history.
  const lagBytes = lagOf(primary, { replayedPosition: position, history: own?.history || primary.history });
  const age = own?.replayAgeSeconds;
  const lagSeconds = lagBytes === 0n ? 0 : age;
  return { position, ...timeline, lagBytes, ...(lagSeconds !== undefined && { lagSeconds }) };
}

function stateOf(
  node: NodeSpec,
  own: ReadReplicationResult | undefined,
  peer: ReplicationPeer | undefined,
  told: string,
): SyncState {
  if (node.joining === true || told === "copying" || told === "starting") return SyncState.STARTING;
  if (peer === undefined) return own?.streaming === true ? SyncState.STREAMING : SyncState.DISCONNECTED;
  // A silent replica may be hanging: the primary's word is that of its kernel.
  if (own?.streaming !== true) return SyncState.DISCONNECTED;
  return peer.state === "streaming" ? SyncState.STREAMING : SyncState.CATCHUP;
}

/** Since when its health has been telling that it is not connected. */
function checkedSince({ status }: ManagedServiceObject, { id }: NodeSpec): Timestamp | undefined {
  const check = status.health.checks.find(({ nodeId, status: level }) => nodeId === id && level !== "healthy");
  return check && timestampFromMs(check.since);
}
