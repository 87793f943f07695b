import { HoldfastError } from "@holdfast/common/errors.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { ManagedServiceObject, ManagedServiceSpec, NodeSpec } from "../managed-service.ts";
import { operationMembers } from "../operation-members.ts";
import { beginOperation } from "../service-commands.ts";

/** A changed service, its operation, and the node that the operation changes. */
export interface NodeChange {
  readonly after: ManagedServiceObject;
  readonly operation: OperationObject;
  readonly node: NodeSpec;
}

export interface OperationArgs {
  readonly operationId: string;
  readonly now: number;
}

/** Starts an operation on one node, and on others of the same kind. Throws WRONG_STATE during a primary change. */
export function beginNodeChange(
  service: ManagedServiceObject,
  type: "add_node" | "remove_node" | "failover",
  { id: nodeId }: NodeSpec,
  change: Partial<ManagedServiceSpec>,
  { operationId, now }: OperationArgs,
  others: readonly NodeSpec[] = [],
): Omit<NodeChange, "node"> {
  // A primary change may outlast the operation that started it, because it waits for connected members.
  if (service.spec.primaryChange !== undefined)
    throw new HoldfastError(
      "WRONG_STATE",
      "The service's primary is changing. Try again when the change is complete.",
      {
        members: operationMembers(service, undefined),
      },
    );
  const work = { nodeId, ...(others.length > 0 && { otherIds: others.map(({ id }) => id) }) };
  return beginOperation(service, type, change, { operationId, now, work });
}
