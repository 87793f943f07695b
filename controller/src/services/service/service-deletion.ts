import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { OperationObject } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { type ManagedServiceObject, type ManagedServiceSpec, serviceSubject } from "./managed-service.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "./service-operations.ts";

/** Inputs of a deletion. `operationId` is the id of its operation, `now` in milliseconds since 1970. */
export interface DeletionRequest {
  readonly operationId: string;
  readonly now: number;
  /** The service cannot be undeleted, and its automated backups are deleted. */
  readonly skipFinalBackup?: boolean;
}

/** Pure: the service with its deletion requested, and the operation that performs it. */
export function requestDeletion(
  service: ManagedServiceObject,
  { operationId, now, skipFinalBackup = false }: DeletionRequest,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec, status } = service;
  const operation = newOperation({
    id: operationId,
    subject: serviceSubject(metadata.id),
    organizationId: metadata.organizationId,
    type: serviceOperations.delete,
    now,
  });
  const after = {
    ...service,
    metadata: { ...nextMetadata(metadata, now), deletionRequestedAt: now },
    spec: { ...spec, ...finalBackupOf(service, skipFinalBackup) },
    status: { ...status, operationId },
  };
  return { after, operation };
}

/**
 * A final backup needs a running service; any other one is undeleted from its newest backup. It begins once no client
 * is connected, so that it has all acknowledged writes.
 */
function finalBackupOf({ spec, status }: ManagedServiceObject, skipped: boolean): Partial<ManagedServiceSpec> {
  if (skipped) return { finalBackup: "skipped" };
  // During a canary the engine may be off, and a deletion does not start it again.
  const hasCanary = spec.canary !== undefined;
  const isUp = spec.power === "on" && !hasCanary && (status.state === "Running" || status.state === "Upgrading");
  if (!isUp || engineOf(spec.databaseType)?.backups === undefined) return {};
  return { finalBackup: "wanted", closed: true, instanceGeneration: spec.instanceGeneration + 1 };
}
