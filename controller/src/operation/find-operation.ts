import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import type { OperationObject } from "./operation.ts";

/**
 * The operation that an object names. Both are written in one transaction but arrive by two watches, so an operation
 * that the collection lacks is read from the store. Otherwise a second operation could start, and the first would never
 * end.
 */
export async function findOperation(
  operations: Collection<OperationObject>,
  id: string | null,
  signal: AbortSignal,
): Promise<Stored<OperationObject> | undefined> {
  return id === null ? undefined : (operations.get(id) ?? operations.getCurrent(id, signal));
}
