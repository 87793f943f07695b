import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import { newOperation, type OperationObject } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { type ManagedServiceObject, type ManagedServiceSpec, serviceSubject } from "./managed-service.ts";

export interface DeletionRequest {
  readonly operationId: string;
  readonly now: number;
  /** It cannot come back, and its automated backups go with it. */
  readonly skipFinalBackup?: boolean;
}

/** Pure: the service with its deletion asked for, and the operation that carries it out. */
export function requestDeletion(
  service: ManagedServiceObject,
  { operationId, now, skipFinalBackup = false }: DeletionRequest,
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec, status } = service;
  const operation = newOperation({
    id: operationId,
    subject: serviceSubject(metadata.id),
    organizationId: metadata.organizationId,
    type: "delete",
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
 * A final backup needs a running service; any other is brought back from its newest backup. It begins once no client is left, so that
 * it has all that was acknowledged.
 */
function finalBackupOf({ spec, status }: ManagedServiceObject, skipped: boolean): Partial<ManagedServiceSpec> {
  if (skipped) return { finalBackup: "skipped" };
  // While another image is tried under the data the engine may be off, and a deletion starts it no more.
  const isTried = spec.trial !== undefined;
  const isUp = spec.power === "on" && !isTried && (status.state === "Running" || status.state === "Upgrading");
  if (!isUp || engineOf(spec.databaseType)?.backups === undefined) return {};
  return { finalBackup: "wanted", closed: true, instanceGeneration: spec.instanceGeneration + 1 };
}
