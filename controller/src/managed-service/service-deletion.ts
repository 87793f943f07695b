import { newOperation, type OperationObject } from "../operation/operation.ts";
import { nextMetadata } from "../store/resource.ts";
import type { ManagedServiceObject } from "./managed-service.ts";

/** Pure: the service with its deletion asked for, and the operation that carries it out. */
export function requestDeletion(
  service: ManagedServiceObject,
  operationId: string,
  now: number,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec, status } = service;
  const operation = newOperation({
    id: operationId,
    serviceId: metadata.id,
    organizationId: metadata.organizationId,
    type: "delete",
    instanceGeneration: spec.instanceGeneration,
    now,
  });
  const after = {
    ...service,
    metadata: { ...nextMetadata(metadata, now), deletionRequestedAt: now },
    status: { ...status, operationId },
  };
  return { after, operation };
}
