import type { Collection } from "../store/collection.ts";
import type { Stored } from "../store/resource.ts";
import type { OperationObject } from "./operation.ts";

/**
 * The operation that an object names. The two are written together and come to memory by two watches, so one that memory
 * does not have yet is asked of the store: taking it for none would let another one begin and leave it without an end.
 */
export async function findOperation(
  operations: Collection<OperationObject>,
  id: string | null,
  signal: AbortSignal,
): Promise<Stored<OperationObject> | undefined> {
  return id === null ? undefined : (operations.get(id) ?? operations.fresh(id, signal));
}
