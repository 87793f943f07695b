import type { AnyMessage, Call } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { type ErrorKey, HoldfastError } from "@holdfast/common/errors.ts";
import type { Operation } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { Fleet } from "#fleet/fleet.ts";
import {
  managedServiceKind,
  type ManagedServiceObject,
  primaryOf,
  serviceSubject,
} from "../../service/managed-service.ts";
import type { ServiceAccess } from "../../service/service-access.ts";
import { refuseWhileBusy } from "../../service/service-verbs.ts";
import type { NewAudit } from "#kernel/store/outbox-entry.ts";
import { findOperation } from "#operation/find-operation.ts";
import { isOver, newOperation, operationKind, type OperationObject } from "#operation/operation.ts";
import { operationMessage } from "#operation/operation-message.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import { retryConflict } from "#kernel/store/retry-conflict.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
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
} from "./engine-change.ts";

export interface EngineChangesDeps {
  readonly begin: () => UnitOfWork;
  readonly changes: Collection<EngineChangeObject>;
  readonly operations: Collection<OperationObject>;
  /** Written together with the end of an operation, and come to memory by a watch of their own. */
  readonly users: Pick<Collection<unknown>, "reached">;
  readonly access: ServiceAccess;
  readonly fleet: Pick<Fleet, "session">;
  /** Resolves when the service's users are described in the object store, or after a while. */
  readonly described: (serviceId: string, signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly newId: () => string;
  /** How long an answer waits for the engine to take the change; past that it tells the operation. */
  readonly patienceMs: number;
}

export interface ChangeRequest<Answer extends AnyMessage> {
  readonly serviceId: string;
  readonly change: EngineChange;
  readonly audit: { readonly action: string; readonly objectKind: NewAudit["objectKind"]; readonly objectId: string };
  /** The answer while it is under way. */
  readonly underWay: (operation: Operation) => Answer;
  /** The answer when the engine has it. */
  readonly done: () => Answer | Promise<Answer>;
}

/** Changes of what is inside engines, as the RPCs ask for them. */
export interface EngineChanges {
  /**
   * Writes down what the engine is to take, and answers when it took it, or when the time to wait is over. The removal of what is
   * being removed is the same operation; throws OPERATION_IN_PROGRESS for every other change of what is being changed,
   * MACHINE_UNREACHABLE with nothing written down, and what the engine refused.
   */
  bring<Answer extends AnyMessage>(request: ChangeRequest<Answer>, call: Call): Promise<Answer>;
  /** What is under way for it, with its operation. */
  find(serviceId: string, target: EngineTarget): UnderWay | undefined;
  /** All of a service that are under way. */
  of(serviceId: string): UnderWay[];
  /** Throws OPERATION_IN_PROGRESS while something is under way for it. */
  refuseWhileChanging(service: ManagedServiceObject, target: EngineTarget): void;
}

export interface UnderWay {
  readonly change: EngineChangeObject;
  readonly operation: OperationObject;
}

export function createEngineChanges(deps: EngineChangesDeps): EngineChanges {
  const { changes, operations, access } = deps;

  /** Resolves to the id of the operation that brings the change, begun here or before. */
  async function begin<A extends AnyMessage>(request: ChangeRequest<A>, call: Call): Promise<string> {
    const { serviceId, change, audit } = request;
    const service = access.requireRunning(serviceId, call);
    const { organizationId } = service.object.metadata;
    const current = await changes.fresh(engineChangeId(serviceId, targetOf(change)), call.signal);
    if (current !== undefined && !current.object.status.isGivenUp)
      return joined(service.object, current.object, change, call);
    if (deps.fleet.session(primaryOf(service.object).id) === undefined)
      throw new HoldfastError("MACHINE_UNREACHABLE", "The machine's agent is not connected.");
    if (current !== undefined) await whenSettled(current.object, call);
    const now = deps.clock.now();
    const operationId = deps.newId();
    const { type } = change;
    const subject = serviceSubject(serviceId);
    const operation = newOperation({ id: operationId, subject, organizationId, type, now });
    const unit = deps.begin();
    unit.onlyWhile({ key: keyOf(managedServiceKind, serviceId), modRevision: service.modRevision });
    unit.create(operationKind, operation);
    unit.create(engineChangeKind, newEngineChange({ serviceId, organizationId, operationId, change, now }));
    unit.audit(auditOf(call, audit.action, audit.objectKind, audit.objectId));
    unit.answer(call, request.underWay(operationMessage(operation)));
    const revision = await unit.commit(call.signal);
    await Promise.all([changes.reached(revision, 1_000), operations.reached(revision, 1_000)]);
    return operationId;
  }

  /** What was given up is looked for as soon as the machine is back; what is asked now must not be taken for it. */
  async function whenSettled({ metadata: { id } }: EngineChangeObject, { signal }: Call): Promise<void> {
    const isSettled = await whenChanged(changes, id, () => changes.get(id) === undefined, deps.patienceMs, signal);
    if (!isSettled) throw new HoldfastError("MACHINE_UNREACHABLE", "The engine does not say what it has.");
  }

  async function joined(
    service: ManagedServiceObject,
    current: EngineChangeObject,
    asked: EngineChange,
    call: Call,
  ): Promise<string> {
    const { operationId, change } = current.spec;
    const isRemoval = asked.type === "delete_user" || asked.type === "delete_database";
    if (isRemoval && change.type === asked.type) return operationId;
    refuseWhileBusy(service, (await findOperation(operations, operationId, call.signal))?.object);
    // The two end together: it did while it was looked at.
    throw new Conflict();
  }

  function underWay({ object: change }: Stored<EngineChangeObject>): UnderWay | undefined {
    const operation = operations.get(change.spec.operationId)?.object;
    return operation === undefined || isOver(operation) ? undefined : { change, operation };
  }

  return {
    async bring(request, call) {
      const operationId = await retryConflict(call.signal, () => begin(request, call));
      const isDone = () => {
        const current = operations.get(operationId)?.object;
        return current !== undefined && isOver(current);
      };
      await whenChanged(operations, operationId, isDone, deps.patienceMs, call.signal);
      const found = await findOperation(operations, operationId, call.signal);
      // It is kept for days, so nothing is told of a change whose end nobody knows.
      if (found === undefined) throw new Error(`the operation ${operationId} is gone`);
      const { object: operation, modRevision } = found;
      // The caller's next read shows the change that this answer calls done.
      if (isOver(operation)) {
        await Promise.all([changes, deps.users].map((collection) => collection.reached(modRevision, 1_000)));
        // A recovery from the object store alone shows it too.
        if (targetOf(request.change).kind === "user") await deps.described(request.serviceId, call.signal);
      }
      const refusal = refusalOf(operation);
      if (refusal !== undefined) {
        await keepAnswer(call, undefined);
        throw refusal;
      }
      const answer = isOver(operation) ? await request.done() : request.underWay(operationMessage(operation));
      await keepAnswer(call, answer);
      return answer;
    },
    find(serviceId, target) {
      const stored = changes.get(engineChangeId(serviceId, target));
      return stored && underWay(stored);
    },
    of: (serviceId) => changes.by(serviceOfChange, serviceId).flatMap((s) => underWay(s) ?? []),
    refuseWhileChanging(service, target) {
      const stored = changes.get(engineChangeId(service.metadata.id, target));
      refuseWhileBusy(service, stored && underWay(stored)?.operation);
    },
  };

  /** The same Idempotency-Key gets what this call gets, and not what was kept while nobody knew it. */
  async function keepAnswer(call: Call, answer: AnyMessage | undefined): Promise<void> {
    if (call.idempotency === undefined) return;
    const unit = deps.begin();
    unit.answerInstead(call, answer);
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

/** What a caller who waited is told of an operation that came to nothing. */
function refusalOf({ status }: OperationObject): HoldfastError | undefined {
  if (status.state === "cancelled") return new HoldfastError("WRONG_STATE", "The service is being deleted.");
  if (status.error === null) return undefined;
  const { code, message } = status.error;
  return new HoldfastError(refusals.get(code) ?? "ENGINE_REFUSED", message);
}
