import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { ReplicationStatusSchema, SyncState } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import { nodeRoleOf } from "../../managed-service-message.ts";
import { isEstablished } from "../members.ts";
import { requireNodesOfParameters } from "../../../configuration/node-bounds.ts";
import { requireMemberCount } from "./first-peer.ts";
import { requireSpace } from "./peer-space.ts";
import type { MemberCommands } from "../topology-commands.ts";

function refuseSwitchover(): never {
  throw new HoldfastError("NOT_POSSIBLE", "The members elect their leader: leadership moves by itself.");
}

const lastNodeRemedy = " Delete the service to remove its last node.";
const fewerNodesRemedy = " For 1 node, restore a backup as a new service with node_count 1.";

export const peerCommands: MemberCommands = {
  requireAddable: ({ spec }, count) => requireMemberCount(spec.databaseType, spec.nodes.length + count),
  requireRemovable({ spec }, node) {
    // A member that cannot join is removable from any number of members.
    if (node.joining === true) return;
    const count = spec.nodes.length - 1;
    requireMemberCount(spec.databaseType, count, count === 0 ? lastNodeRemedy : fewerNodesRemedy);
    requireNodesOfParameters(spec, count);
  },
  requireSpace,
  failOver: refuseSwitchover,
  requireReadyForSwitchover: async () => refuseSwitchover(),
  async replicationStatus(service, node, { fleet, clock }) {
    const { bootId, instance } = fleet.observation(node.id) ?? {};
    const isCurrent = bootId !== undefined && bootId === fleet.session(node.id)?.bootId;
    const report = isCurrent && instance?.state === "running" ? instance.peers : undefined;
    const isConnected = report?.hasMajority === true;
    const syncState = !isEstablished(node)
      ? SyncState.STARTING
      : !isConnected
        ? SyncState.DISCONNECTED
        : report.inSync
          ? SyncState.STREAMING
          : SyncState.CATCHUP;
    return create(ReplicationStatusSchema, {
      nodeId: node.id,
      role: nodeRoleOf(service, node),
      measuredAt: timestampFromMs(clock.now()),
      connected: isConnected,
      syncState,
    });
  },
};
