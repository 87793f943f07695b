import { HoldfastError } from "@holdfast/common/errors.ts";
import type { ManagedServiceObject, NodeSpec } from "../../managed-service.ts";
import { hasOutdatedData } from "../../canary/node-image.ts";
import { operationMembers } from "../../operation-members.ts";
import type { MemberCommands } from "../topology-commands.ts";
import { requireReplicas } from "../new-replica.ts";
import { isEstablished } from "../members.ts";
import { beginNodeChange, type NodeChange, type OperationArgs } from "../node-change.ts";
import { requireReadyForSwitchover } from "./failover/failover-readiness.ts";
import { isPrimary } from "./primary.ts";
import { replicationStatus } from "./replication/replication-status.ts";
import { refuseLastStandby } from "./replication/sync-standbys.ts";

export const primaryCommands: MemberCommands = {
  requireAddable: ({ spec }) => requireReplicas(spec.databaseType),
  requireRemovable(service, node) {
    if (isPrimary(service, node)) {
      const anotherNode = service.spec.nodes.find((each) => each.id !== node.id);
      const advice =
        anotherNode === undefined ? "Delete the service" : "Fail over to a replica first, or delete the service";
      throw new HoldfastError("WRONG_STATE", `The node is the primary. ${advice}.`, {
        members: operationMembers(service, undefined),
      });
    }
    refuseLastStandby(service, node);
  },
  failOver,
  requireReadyForSwitchover,
  replicationStatus,
};

/** Starts a switchover to this replica. Throws if it is not possible, with the reason. */
export function failOver(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange {
  const { spec, status } = service;
  const members = operationMembers(service, undefined);
  if (isPrimary(service, node)) throw new HoldfastError("WRONG_STATE", "The node is the primary already.", { members });
  if (!isEstablished(node) || hasOutdatedData(spec, node))
    throw new HoldfastError("WRONG_STATE", "The node does not follow the primary.", { members });
  const primaryChange = { from: status.primaryNodeId, to: node.id, step: "yield", since: args.now } as const;
  return { ...beginNodeChange(service, "failover", node, { ...spec, primaryChange }, args), node };
}
