import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";
import { operationMembers } from "../operation-members.ts";
import { beginOperation } from "../service-verbs.ts";

/** A changed service, its operation, and the node that it is about. */
export interface NodeChange {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
  readonly node: NodeSpec;
}

export interface OperationArgs {
  readonly operationId: string;
  readonly now: number;
}

/** The begin of an operation about one node. Throws WRONG_STATE during a primary change. */
export function beginNodeChange(
  service: ManagedServiceObject,
  type: "add_node" | "remove_node" | "failover",
  { id: nodeId }: NodeSpec,
  change: Partial<ManagedServiceSpec>,
  { operationId, now }: OperationArgs,
): Omit<NodeChange, "node"> {
  // A primary change may outlast the operation that began it: it waits for members that are present.
  if (service.spec.primaryChange !== undefined)
    throw new HoldfastError("WRONG_STATE", "The service's primary is changing. Wait until its new primary answers.", {
      members: operationMembers(service, undefined),
    });
  return beginOperation(service, type, change, { operationId, now, work: { nodeId } });
}
