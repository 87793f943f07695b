import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import type { ManagedServiceObject, NodeSpec } from "../managed-service.ts";
import { operationMembers } from "../operation-members.ts";
import { beginFailover } from "./automatic-failover.ts";
import { hasRights, isPrimary, isReplicated, isStaying } from "./members.ts";
import { isOutdated } from "../trial/other-image.ts";
import { vouchersUnder } from "./suspicion.ts";

/** What is known of the primary that is to give way. */
export interface OldPrimary {
  /** Its agent has a stream, and can say that its engine has ended. */
  readonly answers: boolean;
  /** From these settings on its engine ends with its right; 0 for one that needs none. */
  readonly fencedGeneration: number;
}

export interface ForcedChange {
  readonly after: ManagedServiceObject;
  /** Undefined where a failover that is under way goes on with this replica. */
  readonly operation: OperationObject | undefined;
}

/**
 * Pure: the service whose primary is fenced, and then replaced by this replica, whatever that one lacks. It goes by the fence
 * of any failover: throws NOT_POSSIBLE where nobody could ever be certain that the primary takes no writes, NOT_SUPPORTED for
 * engines whose primary needs no right, WRONG_STATE otherwise.
 */
export function forceFailover(
  service: ManagedServiceObject,
  node: NodeSpec,
  old: OldPrimary,
  asked: { readonly operationId: string; readonly now: number },
): ForcedChange {
  const { metadata, spec, status } = service;
  const refuse = (detail: string) =>
    new HoldfastError("WRONG_STATE", detail, { members: operationMembers(service, undefined) });
  if (!isReplicated(spec) || !hasRights(service))
    throw new HoldfastError("NOT_SUPPORTED", "Its primary needs no right: there is no failover against its will.");
  if (isPrimary(service, node)) throw refuse("The node is the primary already.");
  if (!isStaying(node)) throw refuse("The node does not follow the primary.");
  if (isOutdated(spec, node)) throw refuse("The node has data of the version before the upgrade.");
  const isUp = (status.state === "Running" || status.state === "Error") && spec.power === "on";
  if (!isUp || metadata.deletionRequestedAt !== undefined || spec.trial !== undefined)
    throw refuse(`The service must be up for this; it is ${status.state}, or something else is done to all of it.`);
  const { succession } = spec;
  if (succession !== undefined && succession.step !== "fence")
    throw refuse("The service's primary is changing, and somebody is named already.");
  const isVoucher = vouchersUnder(service, old.fencedGeneration).some(({ id }) => id === node.id);
  if (!old.answers && !isVoucher)
    throw new HoldfastError(
      "NOT_POSSIBLE",
      "The primary is silent, and this replica is none that confirms its right: it may take writes for as long as it likes.",
    );
  if (succession === undefined) return beginFailover(service, asked, node.id);
  const chosen = { ...spec, succession: { ...succession, forced: node.id } };
  return { after: { ...service, metadata: nextMetadata(metadata, asked.now), spec: chosen }, operation: undefined };
}
