import { create } from "@bufbuild/protobuf";
import type { Log } from "@holdfast/common/log.ts";
import {
  DropEngineUserSchema,
  EngineUserSchema,
  ExpectedUser,
  PutEngineUserSchema,
} from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { again, type ReconcileOutcome, settled } from "#kernel/runtime/reconciler.ts";
import type { ControlLoop } from "#kernel/runtime/runner.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Stored } from "#kernel/store/resource.ts";
import { Conflict, type UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { EngineTasks } from "../../service/engine-task.ts";
import { managedServiceKind, type ManagedServiceObject } from "../../service/managed-service.ts";
import { hasUsersOnEachMember, withNewSettings } from "../change/engine-change-end.ts";
import { sessionRoleOf } from "./attached-login.ts";
import { databaseUserKind, type DatabaseUserObject } from "./database-user.ts";

export interface AttachedLoginWorkDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly services: Collection<ManagedServiceObject>;
  readonly tasks: EngineTasks;
  readonly begin: () => UnitOfWork;
  readonly log: Log;
}

const retryMs = 1_000;

/**
 * Makes engines follow the users of attachments: creates each one once, and drops the deleted ones with their sessions.
 * Both tasks are idempotent, and repeated until the store has their outcome. Key: id of the user.
 */
export function createAttachedLoginWork({ users, services, tasks, begin, log }: AttachedLoginWorkDeps): ControlLoop {
  const isPending = ({ metadata, spec, status }: DatabaseUserObject) =>
    spec.attachment !== undefined && (metadata.deletionRequestedAt !== undefined || status.isInEngine !== true);

  async function reconcile(id: string, signal: AbortSignal): Promise<ReconcileOutcome> {
    const user = await users.getCurrent(id, signal);
    if (user === undefined || !isPending(user.object)) return settled;
    const { serviceId, username } = user.object.spec;
    const service = services.get(serviceId);
    // The users of a deleted service end with it.
    if (service === undefined || service.object.metadata.deletionRequestedAt !== undefined) return settled;
    const isDeleted = user.object.metadata.deletionRequestedAt !== undefined;
    try {
      await (isDeleted ? drop(service.object, username, signal) : put(service.object, user.object, signal));
    } catch (error) {
      signal.throwIfAborted();
      log.info("user of an attachment not changed", { service: serviceId, username, error: String(error) });
      return again(retryMs, "the engine does not change the user");
    }
    const unit = begin();
    if (isDeleted) unit.remove(databaseUserKind, user);
    else unit.update(databaseUserKind, user, { ...user.object, status: { isInEngine: true } });
    if (hasUsersOnEachMember(service.object)) unit.update(managedServiceKind, service, withNewSettings(service.object));
    return commit(unit, signal);
  }

  async function put(service: ManagedServiceObject, user: DatabaseUserObject, signal: AbortSignal): Promise<void> {
    const { username, role, verifier } = user.spec;
    const sessionRole = sessionRoleOf(user, service.spec.databaseType);
    const requested = create(EngineUserSchema, { username, role, verifier, ...(sessionRole && { sessionRole }) });
    const value = create(PutEngineUserSchema, { user: requested, expected: ExpectedUser.ABSENT });
    await tasks.run(service, { case: "putEngineUser", value }, signal);
  }

  async function drop(service: ManagedServiceObject, username: string, signal: AbortSignal): Promise<void> {
    await tasks.run(service, { case: "dropEngineUser", value: create(DropEngineUserSchema, { username }) }, signal);
  }

  async function commit(unit: UnitOfWork, signal: AbortSignal): Promise<ReconcileOutcome> {
    try {
      await users.untilRevision(await unit.commit(signal), 1_000);
    } catch (error) {
      // Another writer was first: the next round sees its change.
      if (!(error instanceof Conflict)) throw error;
      return again(retryMs, "another change came first");
    }
    return settled;
  }

  const keyOfPending = ({ object }: Stored<DatabaseUserObject>) => (isPending(object) ? [object.metadata.id] : []);
  return {
    reconciler: { name: "attached-login", reconcile },
    keys: () => [...users.values()].flatMap(keyOfPending),
    subscribe: (onChange) =>
      users.subscribe((id) => {
        const user = users.get(id);
        if (user !== undefined && isPending(user.object)) onChange(id);
      }),
  };
}
