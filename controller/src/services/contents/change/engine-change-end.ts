import type { Clock } from "@holdfast/common/clock.ts";
import {
  asManagedRole,
  databaseUserId,
  databaseUserKind,
  type DatabaseUserObject,
  type DatabaseUserSpec,
} from "../user/database-user.ts";
import { taskKind, type TaskState } from "#fleet/task/task.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../service/managed-service.ts";
import { canceled, completed, failed, isFinished, operationKind, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { engineChangeKind, type EngineChangeObject, targetOf } from "./engine-change.ts";
import type { EngineChangeStep } from "./engine-change-plan.ts";
import { taskIdOf } from "./engine-change-task.ts";
import { engineProfileOf } from "../../engine/engine-profiles.ts";
import { isReplicated } from "../../service/member/members.ts";

export interface EndDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}

/**
 * A change with its related objects. Deleted objects, and an attempt that was not recorded, are undefined.
 */
export interface EngineChangeRecords {
  readonly change: Stored<EngineChangeObject>;
  readonly operation: Stored<OperationObject> | undefined;
  readonly service: Stored<ManagedServiceObject> | undefined;
  readonly attempt: TaskState | undefined;
}

export type EndStep = Extract<EngineChangeStep, { kind: "applied" | "fail" | "cancel" }>;

/**
 * Ends a change in one transaction: the operation ends, the change is removed, and the stored user matches the engine.
 */
export async function endChange(
  step: EndStep,
  { change, operation, service, attempt }: EngineChangeRecords,
  { users, begin, clock }: EndDeps,
  signal: AbortSignal,
): Promise<bigint> {
  const now = clock.now();
  const unit = begin();
  unit.remove(engineChangeKind, change);
  if (operation !== undefined && !isFinished(operation.object))
    unit.update(operationKind, operation, ended(operation.object, step, now));
  // Memory may lack an attempt that another controller recorded. The transaction fails in that case.
  if (step.kind === "fail" && attempt === undefined)
    unit.onlyWhile({ key: keyOf(taskKind, taskIdOf(change.object)), modRevision: 0n });
  // The transaction fails if the service is removed before the commit, so that no user outlives it.
  const id = databaseUserId(change.object.spec.serviceId, change.object.metadata.name);
  const before = await users.getCurrent(id, signal);
  const userChange = userAfter(step, change.object, before?.object);
  if (service !== undefined && userChange !== undefined && hasUsersOnEachMember(service.object))
    unit.update(managedServiceKind, service, withNewSettings(service.object));
  else if (service !== undefined)
    unit.onlyWhile({ key: keyOf(managedServiceKind, service.object.metadata.id), modRevision: service.modRevision });
  if (userChange !== undefined) {
    if (userChange === "removed") {
      if (before !== undefined) unit.remove(databaseUserKind, before);
    } else {
      const after = newUserObject(id, change.object, userChange, before?.object, now);
      if (before === undefined) unit.create(databaseUserKind, after);
      else unit.update(databaseUserKind, before, after);
    }
  }
  return unit.commit(signal);
}

/** The service with a new generation of settings, by which members that were not connected get the users. */
export function withNewSettings({ spec, ...service }: ManagedServiceObject): ManagedServiceObject {
  return { ...service, spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 } };
}

function ended(operation: OperationObject, step: EndStep, now: number): OperationObject {
  if (step.kind === "applied") return completed(operation, now);
  if (step.kind === "cancel") return canceled(operation, now);
  return failed(operation, { code: step.code, message: step.message }, now);
}

/** The user to store; "removed" to remove it, undefined if nothing changes. */
function userAfter(
  step: EndStep,
  { spec: { change } }: EngineChangeObject,
  before: DatabaseUserObject | undefined,
): DatabaseUserSpec | "removed" | undefined {
  if (step.kind === "fail") {
    const isOfUser = targetOf(change).kind === "user" && change.type !== "create_user";
    const isAbsent = isOfUser && step.code === "database_user_not_found";
    return isAbsent ? "removed" : undefined;
  }
  if (step.kind === "cancel") return undefined;
  switch (change.type) {
    case "delete_user":
      return "removed";
    case "create_user":
      return change.user;
    case "reset_password": {
      // The platform does not grant a role such as `custom`, so the user is stored with the role of its creation.
      const role = step.role === "custom" ? before?.spec.role : asManagedRole(step.role);
      return role === undefined ? undefined : { ...change.user, role };
    }
    default:
      return undefined;
  }
}

/** The stored user; a user that is created again gets a new creation time. */
function newUserObject(
  id: string,
  { metadata, spec }: EngineChangeObject,
  user: DatabaseUserSpec,
  before: DatabaseUserObject | undefined,
  now: number,
): DatabaseUserObject {
  const isNew = before === undefined || spec.change.type === "create_user";
  const { name, organizationId } = metadata;
  const createdAt = isNew ? metadata.createdAt : before.metadata.createdAt;
  const generation = isNew ? 1 : before.metadata.generation + 1;
  return { metadata: { id, name, organizationId, generation, createdAt, updatedAt: now }, spec: user, status: {} };
}

/** True if users are not replicated, so that each member must create them. */
export function hasUsersOnEachMember({ spec }: ManagedServiceObject): boolean {
  return isReplicated(spec) && engineProfileOf(spec.databaseType).replicas?.haveOwnUsers === true;
}
