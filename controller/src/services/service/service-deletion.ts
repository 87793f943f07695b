import { engineOf } from "@holdfast/common/engine-catalog/engine-catalog.ts";
import type { OperationObject } from "#operation/operation.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { taskTarget } from "./member/member-roles.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { type ManagedServiceObject, type ManagedServiceSpec, serviceSubject } from "./managed-service.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { serviceOperations } from "./service-operations.ts";

/** Inputs of a deletion. `operationId` is the id of its operation, `now` in milliseconds since 1970. */
export interface DeletionRequest {
  readonly operationId: string;
  readonly now: number;
  /** True if the service cannot be undeleted, and its automated backups are deleted. */
  readonly skipFinalBackup?: boolean;
  /** True if the primary's engine responds, in any state of the service. */
  readonly isReachable?: boolean;
}

/** True if the engine of the primary runs and its agent is connected. */
export function isReachable(service: ManagedServiceObject, fleet: Pick<Fleet, "observation" | "session">): boolean {
  const { id } = taskTarget(service);
  const [session, observation] = [fleet.session(id), fleet.observation(id)];
  return session !== undefined && observation?.bootId === session.bootId && observation.instance.state === "running";
}

/** The service with its deletion requested, and the operation that performs it. */
export function requestDeletion(
  service: ManagedServiceObject,
  { operationId, now, skipFinalBackup = false, isReachable: reachable = false }: DeletionRequest,
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
    spec: { ...spec, ...finalBackupOf(service, skipFinalBackup, reachable) },
    status: { ...status, operationId },
  };
  return { after, operation };
}

/**
 * Whether a final backup is taken: it needs an engine that responds. It starts once no client is connected, so that it
 * has all acknowledged writes. Without it, an undelete uses the disks or the newest backup.
 */
function finalBackupOf(
  { spec, status }: ManagedServiceObject,
  skipped: boolean,
  reachable: boolean,
): Partial<ManagedServiceSpec> {
  if (skipped) return { finalBackup: "skipped" };
  // During a canary the engine may be stopped, and a deletion does not start it.
  const hasCanary = spec.canary !== undefined;
  const { state } = status;
  const responds = state === "Running" || state === "Upgrading" || (state === "Error" && reachable);
  const isUp = spec.power === "on" && !hasCanary && responds;
  if (!isUp || engineOf(spec.databaseType)?.backups === undefined) return {};
  return { finalBackup: "wanted", closed: true, instanceGeneration: spec.instanceGeneration + 1 };
}
