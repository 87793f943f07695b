import type { Clock } from "@holdfast/common/clock.ts";
import {
  databaseUserId,
  databaseUserKind,
  type DatabaseUserObject,
  type DatabaseUserSpec,
} from "../user/database-user.ts";
import { asManagedRole } from "../user/database-user-role.ts";
import type { TaskState } from "#fleet/task/task.ts";
import { hasUsersOnEachMember } from "./users-of-members.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../service/managed-service.ts";
import { cancelled, completed, failed, isOver, operationKind, type OperationObject } from "#operation/operation.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { keyOf, type Stored } from "#kernel/store/resource.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import { engineChangeKind, type EngineChangeObject } from "./engine-change.ts";
import type { EngineChangeStep } from "./engine-change-plan.ts";
import { taskIdOf } from "./engine-change-task.ts";
import { taskKind } from "#fleet/task/task-object.ts";

export interface EndDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly begin: () => UnitOfWork;
  readonly clock: Clock;
}

/** A change with what belongs to it; undefined what is gone, and the attempt where none was recorded. */
export interface EngineChangeRecords {
  readonly change: Stored<EngineChangeObject>;
  readonly operation: Stored<OperationObject> | undefined;
  readonly service: Stored<ManagedServiceObject> | undefined;
  readonly attempt: TaskState | undefined;
}

export type EndStep = Extract<EngineChangeStep, { kind: "taken" | "fail" | "cancel" }>;

/** Ends the operation unless it is over, forgets the change, and keeps of the user what the engine has, in one transaction. */
export async function endEngineChange(
  step: EndStep,
  { change, operation, service, attempt }: EngineChangeRecords,
  { users, begin, clock }: EndDeps,
  signal: AbortSignal,
): Promise<bigint> {
  const now = clock.now();
  const unit = begin();
  unit.remove(engineChangeKind, change);
  if (operation !== undefined && !isOver(operation.object))
    unit.update(operationKind, operation, ended(operation.object, step, now));
  // Memory may not have an attempt yet that another controller recorded: nothing is ended past it.
  if (step.kind === "fail" && attempt === undefined)
    unit.onlyWhile({ key: keyOf(taskKind, taskIdOf(change.object)), modRevision: 0n });
  // A service that is forgotten meanwhile takes its users with it; none may come after.
  const userChange = userAfter(step, change.object);
  if (service !== undefined && userChange !== undefined && hasUsersOnEachMember(service.object))
    unit.update(managedServiceKind, service, withNewSettings(service.object));
  else if (service !== undefined)
    unit.onlyWhile({ key: keyOf(managedServiceKind, service.object.metadata.id), modRevision: service.modRevision });
  if (userChange !== undefined) {
    const id = databaseUserId(change.object.spec.serviceId, change.object.metadata.name);
    const before = await users.fresh(id, signal);
    if (userChange === "gone") {
      if (before !== undefined) unit.remove(databaseUserKind, before);
    } else {
      const after = newUserObject(id, change.object, userChange, before?.object, now);
      if (before === undefined) unit.create(databaseUserKind, after);
      else unit.update(databaseUserKind, before, after);
    }
  }
  return unit.commit(signal);
}

/** Members that were not there get the users with their settings. */
function withNewSettings({ spec, ...service }: ManagedServiceObject): ManagedServiceObject {
  return { ...service, spec: { ...spec, instanceGeneration: spec.instanceGeneration + 1 } };
}

function ended(operation: OperationObject, step: EndStep, now: number): OperationObject {
  if (step.kind === "taken") return completed(operation, now);
  if (step.kind === "cancel") return cancelled(operation, now);
  return failed(operation, { code: step.code, message: step.message }, now);
}

/** What is to be kept of the user now; undefined when that is as it was. */
function userAfter(step: EndStep, { spec: { change } }: EngineChangeObject): DatabaseUserSpec | "gone" | undefined {
  if (step.kind === "fail") {
    const isGone = change.type !== "create_user" && step.code === "database_user_not_found";
    return isGone ? "gone" : undefined;
  }
  if (step.kind === "cancel") return undefined;
  if (change.type === "delete_user") return "gone";
  if (change.type === "create_user") return change.user;
  return change.type === "reset_password" ? { ...change.user, role: asManagedRole(step.role) } : undefined;
}

/** The user as it is now, known for as long as before; one that is made anew begins now. */
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
