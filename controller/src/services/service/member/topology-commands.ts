import type { Clock } from "@holdfast/common/clock.ts";
import type { ReplicationStatus } from "@holdfast/proto/holdfast/v1/node_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import type { NodeChange, OperationArgs } from "./node-change.ts";

export interface VerbDeps {
  readonly fleet: Fleet;
  readonly clock: Clock;
}

/** The changes of members that users request, by topology. Each throws if the change is not possible. */
export interface MemberCommands {
  /** Throws if the service cannot have this number of additional members. */
  requireAddable(service: ManagedServiceObject, count: number): void;
  /** Throws if the member cannot be removed. */
  requireRemovable(service: ManagedServiceObject, node: NodeSpec): void;
  /** Throws if the other members have no space for the member's data. Absent if each of them has all data. */
  requireSpace?(service: ManagedServiceObject, node: NodeSpec, deps: Pick<VerbDeps, "fleet">): void;
  /** Starts a switchover to this member. */
  failOver(service: ManagedServiceObject, node: NodeSpec, args: OperationArgs): NodeChange;
  requireReadyForSwitchover(
    service: ManagedServiceObject,
    nodeId: string,
    deps: VerbDeps,
    signal: AbortSignal,
  ): Promise<void>;
  replicationStatus(
    service: ManagedServiceObject,
    node: NodeSpec,
    deps: VerbDeps,
    signal: AbortSignal,
  ): Promise<ReplicationStatus>;
}
