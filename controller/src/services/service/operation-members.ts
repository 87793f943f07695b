import type { ManagedServiceObject } from "./managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";

/** Additional members of an error (409) about a service: its status and the operation in progress. */
export function operationMembers(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
): Readonly<Record<string, unknown>> {
  const summary = operation && { id: operation.metadata.id, type: operation.spec.type, status: operation.status.state };
  return { service_status: service.status.state, operation: summary ?? null };
}
