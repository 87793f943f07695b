import { HoldfastError } from "@holdfast/common/errors.ts";
import { canceled, type OperationObject } from "#operation/operation.ts";
import { nextMetadata } from "#kernel/store/resource.ts";
import { operationMembers } from "./operation-members.ts";
import { type ManagedServiceObject, type ManagedServiceSpec, serviceSubject } from "./managed-service.ts";
import { drainReason } from "./health/managed-service-health.ts";
import { withoutRestarts, withRestart } from "./member/restarts.ts";
import type { ManagedServiceState } from "./managed-service-lifecycle.ts";
import { type DeletionRequest, requestDeletion } from "./service-deletion.ts";
import { attachmentText, type ServiceConsumer } from "./service-consumers.ts";
import { newOperation, type WorkOf } from "#operation/operation-definition.ts";
import { serviceOperations, type ServiceOperationType } from "./service-operations.ts";

/** Commands of the API that change a service. */
export type ServiceCommand = Extract<ServiceOperationType, "start" | "stop" | "restart" | "delete">;

/** Outcome of a command: already in progress, or a change with its operation. */
export type CommandOutcome =
  | { readonly kind: "inProgress" }
  | {
      readonly kind: "change";
      readonly after: ManagedServiceObject;
      readonly operation: OperationObject;
      /** The operation that the command cancels, if one is in progress. */
      readonly ended: OperationObject | undefined;
    };

// States in which a command is refused, with the reason and advice (api.md, section 3).
const notReady = { Pending: "The service is being created.", Provisioning: "The service is being set up." };
// biome-ignore format: a table, aligned so that it reads as one
const refusals: Record<Exclude<ServiceCommand, "delete">, Partial<Record<ManagedServiceState, string>>> = {
  start:   { ...notReady, Running: "The service is Running already." },
  stop:    { ...notReady, Stopped: "The service is Stopped already." },
  restart: { ...notReady, Stopped: "The service is Stopped; start it.",
                          Error: "The service is in Error; start it to try again." },
};

/** Applies a command. Throws if it is not possible, with the reason (409). */
export function requestCommand(
  service: ManagedServiceObject,
  command: ServiceCommand,
  inProgress: OperationObject | undefined,
  request: DeletionRequest & { readonly consumers?: readonly ServiceConsumer[] },
): CommandOutcome {
  const { operationId, now } = request;
  if (inProgress?.spec.type === command) return { kind: "inProgress" };
  if (service.metadata.deletionRequestedAt !== undefined) {
    throw new HoldfastError("OPERATION_IN_PROGRESS", "The service is being deleted.", {
      members: operationMembers(service, inProgress),
    });
  }
  if (command === "delete") {
    if (service.spec.deletionProtection) {
      throw new HoldfastError("DELETION_PROTECTED", "Set deletion_protection to false first.", {
        members: operationMembers(service, inProgress),
      });
    }
    requireUnattached(service, request.consumers ?? []);
    const ended = inProgress && canceled(inProgress, now);
    return { kind: "change", ...requestDeletion(service, request), ended };
  }
  refuseWhileBusy(service, inProgress);
  // A service that is Stopped though it should run waits for the drain of its host. Only a stop is accepted.
  const stoppedForDrain = service.status.state === "Stopped" && service.spec.power === "on";
  const refusal = stoppedForDrain
    ? command === "stop"
      ? undefined
      : drainReason
    : refusals[command][service.status.state];
  if (refusal !== undefined)
    throw new HoldfastError("WRONG_STATE", refusal, { members: operationMembers(service, inProgress) });
  return {
    kind: "change",
    ...beginOperation(service, command, specChange(service, command, now), { operationId, now }),
    ended: undefined,
  };
}

/**
 * Throws ATTACHMENT_IN_USE while an app stores its users in the service, or in this database, and while it is attached.
 */
export function requireUnattached(
  { spec }: ManagedServiceObject,
  consumers: readonly ServiceConsumer[],
  database?: string,
): void {
  const used = spec.platformAccess?.find((each) => database === undefined || each.database === database);
  if (used !== undefined)
    throw new HoldfastError("ATTACHMENT_IN_USE", `An app stores its users in the database ${used.database}.`);
  const attached = attachmentText(consumers, database);
  if (attached !== undefined) throw new HoldfastError("ATTACHMENT_IN_USE", attached);
}

/** Throws OPERATION_IN_PROGRESS while another operation changes the service. */
export function refuseWhileBusy(service: ManagedServiceObject, inProgress: OperationObject | undefined): void {
  if (inProgress === undefined) return;
  const detail = `Operation ${inProgress.metadata.id} (${inProgress.spec.type}) is in progress.`;
  throw new HoldfastError("OPERATION_IN_PROGRESS", detail, { members: operationMembers(service, inProgress) });
}

/** The service with a changed spec, and the operation that completes when its machines have applied the spec. */
export function beginOperation<T extends ServiceOperationType>(
  service: ManagedServiceObject,
  type: T,
  change: Partial<ManagedServiceSpec>,
  {
    operationId,
    now,
    work,
  }: { readonly operationId: string; readonly now: number; readonly work?: WorkOf<(typeof serviceOperations)[T]> },
): { after: ManagedServiceObject; operation: OperationObject } {
  const { metadata, spec, status } = service;
  const instanceGeneration = spec.instanceGeneration + 1;
  const { id: serviceId, organizationId } = metadata;
  const subject = serviceSubject(serviceId);
  const operation = newOperation({
    id: operationId,
    subject,
    organizationId,
    type: serviceOperations[type],
    now,
    ...(work && { work }),
  });
  const after = {
    metadata: nextMetadata(metadata, now),
    spec: { ...spec, ...change, instanceGeneration },
    status: { ...status, operationId },
  };
  return { after: { ...service, ...after }, operation };
}

function specChange(
  service: ManagedServiceObject,
  command: Exclude<ServiceCommand, "delete">,
  now: number,
): Partial<ManagedServiceSpec> {
  const { spec } = service;
  if (command === "restart") return withRestart(service);
  if (command === "stop") return { power: "off" };
  return { power: "on", nodes: spec.nodes.map(withoutRestarts), ...(spec.power === "off" && { poweredOnAt: now }) };
}
