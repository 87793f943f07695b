import type { ManagedServiceObject } from "./managed-service.ts";
import type { OperationObject } from "#operation/operation.ts";

/** What a 409 about a service tells beside its detail: the service's status and the operation in progress. */
export function operationMembers(
  service: ManagedServiceObject,
  operation: OperationObject | undefined,
): Readonly<Record<string, unknown>> {
  const shown = operation && { id: operation.metadata.id, type: operation.spec.type, status: operation.status.state };
  return { service_status: service.status.state, operation: shown ?? null };
}
