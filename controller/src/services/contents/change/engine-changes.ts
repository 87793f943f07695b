import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { Operation } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import type { Fleet } from "#fleet/fleet.ts";
import { managedServiceKind, type ManagedServiceObject, serviceSubject } from "../../service/managed-service.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import type { ServiceAccess } from "../../service/service-access.ts";
import { refuseWhileBusy } from "../../service/service-commands.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { findOperation, isFinished, operationKind, type OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { mutate, type MutationOutcome } from "#access/mutate.ts";
import { Conflict, type UnitOfWork, type Changes } from "#kernel/store/unit-of-work.ts";
import { whenChanged } from "#kernel/store/when-changed.ts";
import {
  type EngineChange,
  engineChangeId,
  engineChangeKind,
  type EngineChangeObject,
  type EngineTarget,
  newEngineChange,
  serviceOfChange,
  targetOf,
  requireNameLength,
} from "./engine-change.ts";
import { newOperation } from "#operation/operation-definition.ts";
import { engineOperations } from "./engine-operations.ts";
import { taskTarget } from "../../service/member/member-roles.ts";

export interface EngineChangesDeps {
  readonly begin: () => UnitOfWork;
  readonly changes: Collection<EngineChangeObject>;
  readonly operations: Collection<OperationObject>;
  /** Users, which are written when an operation ends and have a separate watch. */
  readonly users: Pick<Collection<unknown>, "untilRevision">;
  readonly access: ServiceAccess;
  readonly fleet: Pick<Fleet, "session">;
  /** Resolves once the stored descriptor has the service's users, or after 3 seconds. */
  readonly awaitDescriptor: (serviceId: string, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly newId: () => string;
  /** Maximum time for which a call waits for the engine, in milliseconds. Afterwards it returns the operation. */
  readonly waitMs: number;
}

export interface ChangeRequest<Response extends AnyMessage> {
  readonly serviceId: string;
  readonly change: EngineChange;
  readonly audit: { readonly action: string; readonly objectKind: NewAudit["objectKind"]; readonly objectId: string };
  /** The response while the change is in progress. */
  readonly inFlight: (operation: Operation) => Response;
  /** The response once the engine has applied the change. */
  readonly applied: () => Response | Promise<Response>;
}

/** Changes inside engines, as the API requests them. */
export interface EngineChanges {
  /**
   * Writes the change, and returns once the engine has applied it or `waitMs` have passed. A second deletion of the
   * same target joins the first; every other change of a target with one in progress throws OPERATION_IN_PROGRESS.
   * Throws MACHINE_UNREACHABLE, with nothing written, if the agent is not connected, and the engine's refusal.
   */
  apply<Response extends AnyMessage>(request: ChangeRequest<Response>, call: Call): Promise<Response>;
  /** The change of a target in progress, with its operation. */
  find(serviceId: string, target: EngineTarget): InFlightChange | undefined;
  /** All changes of a service in progress. */
  of(serviceId: string): InFlightChange[];
  /** Throws OPERATION_IN_PROGRESS while the target has a change in progress. */
  refuseWhileChanging(service: ManagedServiceObject, target: EngineTarget): void;
}

export interface InFlightChange {
  readonly change: EngineChangeObject;
  readonly operation: OperationObject;
}

export function createEngineChanges(deps: EngineChangesDeps): EngineChanges {
  const { changes, operations, access } = deps;

  /** Resolves to the id of the operation that applies the change, new or existing. */
  async function begin<A extends AnyMessage>(
    request: ChangeRequest<A>,
    unit: Changes,
    call: Call,
  ): Promise<MutationOutcome<string>> {
    const { serviceId, change, audit } = request;
    const service = access.requireRunning(serviceId, call);
    const { organizationId } = service.object.metadata;
    requireNameLength(change, engineProfileOf(service.object.spec.databaseType));
    const current = await changes.getCurrent(engineChangeId(serviceId, targetOf(change)), call.signal);
    if (current !== undefined && !current.object.status.isGivenUp)
      return { unchanged: await existingOperation(service.object, current.object, change, call) };
    if (deps.fleet.session(taskTarget(service.object).id) === undefined)
      throw new HoldfastError("MACHINE_UNREACHABLE", "The machine's agent is not connected. Nothing was changed.");
    if (current !== undefined) await whenSettled(current.object, call);
    const now = deps.clock.now();
    const operationId = deps.newId();
    const { type } = change;
    const subject = serviceSubject(serviceId);
    const operation = newOperation({ id: operationId, subject, organizationId, type: engineOperations[type], now });
    unit.onlyWhile({ key: keyOf(managedServiceKind, serviceId), modRevision: service.modRevision });
    unit.create(operationKind, operation);
    unit.create(engineChangeKind, newEngineChange({ serviceId, organizationId, operationId, change, now }));
    const stored = request.inFlight(operationMessage(operation));
    return { id: audit.objectId, result: operationId, stored };
  }

  /**
   * Waits until an earlier change that was given up is settled, so that its outcome is not mistaken for the outcome of
   * the new change.
   */
  async function whenSettled({ metadata: { id } }: EngineChangeObject, { signal }: Call): Promise<void> {
    const isSettled = await whenChanged(changes, id, () => changes.get(id) === undefined, deps.waitMs, signal);
    if (!isSettled)
      throw new HoldfastError(
        "MACHINE_UNREACHABLE",
        "The engine does not report the outcome of an earlier change. Try again later.",
      );
  }

  async function existingOperation(
    service: ManagedServiceObject,
    current: EngineChangeObject,
    requested: EngineChange,
    call: Call,
  ): Promise<string> {
    const { operationId, change } = current.spec;
    const isRemoval = requested.type === "delete_user" || requested.type === "delete_database";
    if (isRemoval && change.type === requested.type) return operationId;
    refuseWhileBusy(service, (await findOperation(operations, operationId, call.signal))?.object);
    // Change and operation have ended since they were read: read both again.
    throw new Conflict();
  }

  function inFlight({ object: change }: Stored<EngineChangeObject>): InFlightChange | undefined {
    const operation = operations.get(change.spec.operationId)?.object;
    return operation === undefined || isFinished(operation) ? undefined : { change, operation };
  }

  return {
    async apply(request, call) {
      const { action, objectKind: kind } = request.audit;
      const mutation = { action, kind, visibleIn: [changes, operations] };
      const operationId = await mutate(deps, call, mutation, (unit) => begin(request, unit, call));
      const isDone = () => {
        const current = operations.get(operationId)?.object;
        return current !== undefined && isFinished(current);
      };
      await whenChanged(operations, operationId, isDone, deps.waitMs, call.signal);
      const found = await findOperation(operations, operationId, call.signal);
      // Operations are retained for days: without one the outcome is unknown.
      if (found === undefined) throw new Error(`the operation ${operationId} does not exist`);
      const { object: operation, modRevision } = found;
      // Wait until memory has the change, so that the caller's next read returns it.
      if (isFinished(operation)) {
        await Promise.all([changes, deps.users].map((collection) => collection.untilRevision(modRevision, 1_000)));
        // Wait until the stored descriptor has the user, so that a recovery from the object store has it.
        if (targetOf(request.change).kind === "user") await deps.awaitDescriptor(request.serviceId, call.signal);
      }
      const refusal = refusalOf(operation);
      if (refusal !== undefined) {
        await storeResponse(call, undefined);
        throw refusal;
      }
      const response = isFinished(operation) ? await request.applied() : request.inFlight(operationMessage(operation));
      await storeResponse(call, response);
      return response;
    },
    find(serviceId, target) {
      const stored = changes.get(engineChangeId(serviceId, target));
      return stored && inFlight(stored);
    },
    of: (serviceId) => changes.by(serviceOfChange, serviceId).flatMap((s) => inFlight(s) ?? []),
    refuseWhileChanging(service, target) {
      const stored = changes.get(engineChangeId(service.metadata.id, target));
      refuseWhileBusy(service, stored && inFlight(stored)?.operation);
    },
  };

  /** Replaces the response that was stored for the Idempotency-Key while the outcome was unknown. */
  async function storeResponse(call: Call, response: AnyMessage | undefined): Promise<void> {
    if (call.idempotency === undefined) return;
    const unit = deps.begin();
    unit.replaceResponse(call, response);
    // oxlint-disable-next-line holdfast/audited -- replaces the response of a change that is audited already
    await unit.commit(call.signal);
  }
}

// biome-ignore format: a table, aligned so that it reads as one
const refusals: ReadonlyMap<string, ErrorKey> = new Map(
  Object.entries<ErrorKey>({
  engine_refused:          "ENGINE_REFUSED",
  engine_busy:             "ENGINE_REFUSED",
  invalid_task:            "NOT_SUPPORTED",
  not_supported:           "NOT_SUPPORTED",
  machine_unreachable:     "MACHINE_UNREACHABLE",
  outcome_unknown:         "MACHINE_UNREACHABLE",
  name_taken:              "NAME_TAKEN",
  database_user_not_found: "DATABASE_USER_NOT_FOUND",
  database_not_found:      "DATABASE_NOT_FOUND",
  not_possible:            "NOT_POSSIBLE",
}),
);

/** The error of a failed or canceled operation, for the waiting caller. */
function refusalOf({ status }: OperationObject): HoldfastError | undefined {
  if (status.state === "cancelled") return new HoldfastError("WRONG_STATE", "The service is being deleted.");
  if (status.error === null) return undefined;
  const { code, message } = status.error;
  return new HoldfastError(refusals.get(code) ?? "ENGINE_REFUSED", message);
}
