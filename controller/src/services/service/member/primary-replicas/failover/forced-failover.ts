import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "../../../managed-service.ts";
import { operationMembers } from "../../../operation-members.ts";
import { beginFailover } from "./automatic-failover.ts";
import { isReplicated, isEstablished } from "../../members.ts";
import { hasOutdatedData } from "../../../canary/node-image.ts";
import { candidatesCountedAt } from "./suspicion.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { NodePositionSchema } from "@holdfast/proto/holdfast/admin/v1/failover_pb.ts";
import type { ReadReplicationResult } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { LogPositions } from "../../../../engine/log-positions.ts";
import { lagOf } from "../replication/log-position.ts";
import { isPrimary, needsPrimaryLease } from "../primary.ts";

/** State of the primary that is replaced. */
export interface OldPrimary {
  /** True if the primary's agent is connected, so that it can report that the engine has ended. */
  readonly isConnected: boolean;
  /** First generation of settings under which the engine stops when its lease expires; 0: it needs no lease. */
  readonly fencedGeneration: number;
}

/** The service with its forced failover. */
export interface ForcedChange {
  readonly after: ManagedServiceObject;
  /** Undefined if a failover that is already in progress continues with this replica. */
  readonly operation: OperationObject | undefined;
}

/**
 * The service with a failover to this replica, even if it lacks data. The primary is fenced as in any failover. Throws
 * NOT_POSSIBLE if it could never be certain that the primary takes no writes,
 * NOT_SUPPORTED for engines whose primary needs no lease, and WRONG_STATE otherwise.
 */
export function forceFailover(
  service: ManagedServiceObject,
  node: NodeSpec,
  old: OldPrimary,
  args: { readonly operationId: string; readonly now: number },
): ForcedChange {
  const { metadata, spec, status } = service;
  const refuse = (detail: string) =>
    new HoldfastError("WRONG_STATE", detail, { members: operationMembers(service, undefined) });
  if (!isReplicated(spec) || !needsPrimaryLease(service))
    throw new HoldfastError(
      "NOT_SUPPORTED",
      "The primary of this engine needs no lease, so a failover cannot be forced.",
    );
  if (isPrimary(service, node)) throw refuse("The node is the primary already.");
  if (!isEstablished(node)) throw refuse("The node does not follow the primary.");
  if (hasOutdatedData(spec, node)) throw refuse("The node has data from before the upgrade.");
  const isUp = (status.state === "Running" || status.state === "Error") && spec.power === "on";
  if (!isUp || metadata.deletionRequestedAt !== undefined || spec.canary !== undefined)
    throw refuse(
      `A failover needs a service in state Running or Error without another change in progress; it is ${status.state}.`,
    );
  const { primaryChange } = spec;
  if (primaryChange !== undefined && primaryChange.step !== "fence")
    throw refuse("The service's primary is changing, and its successor is named already.");
  const isCandidate = candidatesCountedAt(service, old.fencedGeneration).some(({ id }) => id === node.id);
  if (!old.isConnected && !isCandidate)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "The primary does not respond and this replica does not confirm its lease, so it can never be certain that the primary takes no writes.",
    );
  if (primaryChange === undefined) return beginFailover(service, args, node.id);
  const chosen = { ...spec, primaryChange: { ...primaryChange, forced: node.id } };
  return { after: { ...service, metadata: nextMetadata(metadata, args.now), spec: chosen }, operation: undefined };
}

type ReplicationReport = Pick<ReadReplicationResult, "timeline" | "history" | "position">;

/**
 * The position of each node, and how many bytes it is ahead of the chosen node. `reports`: the reports of the nodes
 * that responded, by node id.
 */
export function nodePositions(
  service: ManagedServiceObject,
  chosen: string,
  reports: ReadonlyMap<string, ReplicationReport>,
  positions: LogPositions,
): MessageInitShape<typeof NodePositionSchema>[] {
  const chosenReport = reports.get(chosen);
  return service.spec.nodes.map((node) => {
    const role = isPrimary(service, node) ? "primary" : "replica";
    const has = reports.get(node.id);
    if (has === undefined) return { nodeId: node.id, role, answers: false };
    const { timeline, history, position } = has;
    // A node with another history would lose all its data.
    const chosenHas = { replayedPosition: chosenReport?.history === history ? chosenReport.position : "", history };
    const { bytes: lostBytes = 0n } = lagOf(positions, has, chosenHas);
    const order = positions.compare(position, chosenHas.replayedPosition);
    return { nodeId: node.id, role, answers: true, timeline, position, lostBytes, order };
  });
}
