import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { defaultUser } from "@holdfast/common/engine-catalog/default-names.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import type { EngineUserState } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import {
  type DatabasePassword,
  DatabasePasswordSchema,
  type DatabaseUser,
  DatabaseUserDeletionSchema,
  DatabaseUserSchema,
  DatabaseUserService,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import type { Operation } from "@holdfast/proto/holdfast/v1/operation_pb.ts";
import { auditOf } from "#access/caller.ts";
import type { EngineChanges } from "./change/engine-changes.ts";
import type { EngineTasks } from "../service/engine-task.ts";
import type { ManagedServiceObject } from "../service/managed-service.ts";
import type { ServiceAccess } from "../service/service-access.ts";
import { operationMessage } from "#operation/operation-message.ts";
import { type Cursors, pageByName } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import { keyOf } from "#kernel/store/resource.ts";
import {
  databaseUserId,
  databaseUserKind,
  type DatabaseUserObject,
  newUser,
  roleMessage,
  roleName,
} from "./user/database-user.ts";
import { engineProfileOf } from "../engine/engine-profiles.ts";
import { refuseAttachedLogin } from "./user/attached-login.ts";
import { checkPassword } from "./user/check-password.ts";

export interface DatabaseUserApiDeps {
  readonly users: Collection<DatabaseUserObject>;
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly changes: EngineChanges;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly clock: Clock;
  readonly auditedActs: Pick<AuditedActs, "read">;
}

/**
 * The RPCs of users inside an engine. Each call queries the engine; only users that the platform created are stored.
 */
export function createDatabaseUserApi(deps: DatabaseUserApiDeps): ServedService {
  const { access, tasks, changes } = deps;

  /** The engine's users, and the users being created. */
  async function engineUsers(service: ManagedServiceObject, call: Call): Promise<EngineUserState[]> {
    const input = { case: "listEngineUsers", value: { $typeName: "holdfast.agent.v1.ListEngineUsers" } } as const;
    const { users } = await tasks.run(service, input, call.signal);
    const creating = changes.of(service.metadata.id).flatMap(({ change: { spec } }): EngineUserState[] => {
      if (spec.change.type !== "create_user") return [];
      const { username, role } = spec.change.user;
      const { replication = false } = spec.change;
      const exists = users.some((user) => user.username === username);
      return exists ? [] : [{ $typeName: "holdfast.agent.v1.EngineUserState", username, role, replication }];
    });
    return [...users, ...creating];
  }

  async function requireEngineUser(
    service: ManagedServiceObject,
    username: string,
    call: Call,
  ): Promise<EngineUserState> {
    const user = (await engineUsers(service, call)).find((candidate) => candidate.username === username);
    if (user === undefined) throw new HoldfastError("DATABASE_USER_NOT_FOUND", `The engine has no user ${username}.`);
    return user;
  }

  function message({ metadata }: ManagedServiceObject, { username, role, replication }: EngineUserState): DatabaseUser {
    const managed = deps.users.get(databaseUserId(metadata.id, username))?.object;
    const inFlight = changes.find(metadata.id, { kind: "user", name: username });
    // The message of a user being created has its requested role.
    const creating = inFlight?.change.spec.change.type === "create_user" ? inFlight.change : undefined;
    const createdAt = (creating ?? managed)?.metadata.createdAt;
    return create(DatabaseUserSchema, {
      serviceId: metadata.id,
      username,
      role: roleMessage(role),
      replication,
      managed: createdAt !== undefined,
      ...(createdAt === undefined ? {} : { createdAt: timestampFromMs(createdAt) }),
      ...(inFlight === undefined ? {} : { operation: operationMessage(inFlight.operation) }),
    });
  }

  function passwordMessage(serviceId: string, username: string, password: string, operation?: Operation) {
    return create(DatabasePasswordSchema, { serviceId, username, password, ...(operation && { operation }) });
  }

  /** A user with a new password. It is stored once the engine has it. */
  function userOf(serviceId: string, username: string, role: DatabaseUserObject["spec"]["role"], call: Call) {
    const { metadata, spec } = access.requireRunning(serviceId, call).object;
    const { organizationId } = metadata;
    const { sealer, clock } = deps;
    const engine = spec.databaseType;
    return newUser({ serviceId, organizationId, username, role, engine, sealer, now: clock.now() });
  }

  /** Throws for an engine without logical slots. */
  function requireReplication(serviceId: string, call: Call): void {
    const { databaseType } = access.requireRunning(serviceId, call).object.spec;
    if (engineProfileOf(databaseType).hasLogicalSlots !== true)
      throw invalid({ field: "replication", code: "not_supported", detail: `${databaseType} has no logical slots` });
  }

  function auditNameOf(serviceId: string, username: string, action: string) {
    const objectId = databaseUserId(serviceId, username);
    return { action: `database-user.${action}`, objectKind: "database-user", objectId } as const;
  }

  const handlers: Handlers<typeof DatabaseUserService> = {
    listDatabaseUsers: async (request, call) => {
      const { object } = access.requireRunning(request.serviceId, call);
      const page = deps.cursors.open(call, `database-users ${request.serviceId}`, null, request);
      const { items, next } = pageByName(await engineUsers(object, call), ({ username }) => username, page);
      return { users: items.map((user) => message(object, user)), ...page.next(next) };
    },

    createDatabaseUser: ({ serviceId, username, role, replication = false }, call) => {
      if (replication) requireReplication(serviceId, call);
      const { user } = userOf(serviceId, username, roleName(role), call);
      const createdAt = timestampFromMs(user.metadata.createdAt);
      const response = { serviceId, username, role, replication, managed: true, createdAt };
      return changes.apply(
        {
          serviceId,
          change: { type: "create_user", user: user.spec, ...(replication && { replication }) },
          audit: auditNameOf(serviceId, username, "create"),
          inFlight: (operation) => create(DatabaseUserSchema, { ...response, operation }),
          applied: () => create(DatabaseUserSchema, response),
        },
        call,
      );
    },

    getDatabaseUser: async ({ serviceId, username }, call) => {
      const { object } = access.requireRunning(serviceId, call);
      return message(object, await requireEngineUser(object, username, call));
    },

    updateDatabaseUser: async ({ serviceId, username, replication }, call) => {
      if (replication === true) requireReplication(serviceId, call);
      const { object } = access.requireRunning(serviceId, call);
      const before = await requireEngineUser(object, username, call);
      if (replication === undefined || replication === before.replication) return message(object, before);
      const user = { ...before, replication };
      return changes.apply(
        {
          serviceId,
          change: { type: "update_user", username, replication },
          audit: auditNameOf(serviceId, username, "update"),
          inFlight: (operation) => create(DatabaseUserSchema, { ...message(object, user), operation }),
          applied: () => {
            const { operation: _, ...applied } = message(object, user);
            return create(DatabaseUserSchema, applied);
          },
        },
        call,
      );
    },

    deleteDatabaseUser: async ({ serviceId, username }, call) => {
      access.requireRunning(serviceId, call);
      if (username === defaultUser)
        throw new HoldfastError(
          "NOT_POSSIBLE",
          `${defaultUser} is the default user of the service and cannot be deleted.`,
        );
      refuseAttachedLogin(deps.users.get(databaseUserId(serviceId, username))?.object);
      return changes.apply(
        {
          serviceId,
          change: { type: "delete_user", username },
          audit: auditNameOf(serviceId, username, "delete"),
          inFlight: (operation) => create(DatabaseUserDeletionSchema, { serviceId, username, operation }),
          applied: () => create(DatabaseUserDeletionSchema, { serviceId, username }),
        },
        call,
      );
    },

    revealPassword: async ({ serviceId, username }, call) => {
      const { object } = access.require(serviceId, call);
      const running = object.status.state === "Running";
      if (!running && object.status.state !== "Stopped") access.requireRunning(serviceId, call);
      const managed = deps.users.get(databaseUserId(serviceId, username))?.object;
      if (managed === undefined) {
        changes.refuseWhileChanging(object, { kind: "user", name: username });
        if (running) await requireEngineUser(object, username, call);
        const key = running ? "PASSWORD_NOT_KNOWN" : "DATABASE_USER_NOT_FOUND";
        throw new HoldfastError(
          key,
          `The platform has no password of ${username}. Reset the password to get a new one.`,
        );
      }
      if (running) await checkPassword(object, managed, call, deps);
      const { id } = managed.metadata;
      return deps.auditedActs.read(auditOf(call, "database-user.reveal-password", "database-user", id), () =>
        passwordMessage(
          serviceId,
          username,
          deps.sealer.open(managed.spec.sealedPassword, keyOf(databaseUserKind, id)),
        ),
      );
    },

    resetPassword: async ({ serviceId, username }, call): Promise<DatabasePassword> => {
      // The engine retains the user's role; the result contains it.
      const { user, password } = userOf(serviceId, username, "readonly", call);
      refuseAttachedLogin(deps.users.get(databaseUserId(serviceId, username))?.object);
      const { role: _, ...managed } = user.spec;
      return changes.apply(
        {
          serviceId,
          change: { type: "reset_password", user: managed },
          audit: auditNameOf(serviceId, username, "reset-password"),
          inFlight: (operation) => passwordMessage(serviceId, username, password, operation),
          applied: () => passwordMessage(serviceId, username, password),
        },
        call,
      );
    },
  };
  return serve(DatabaseUserService, handlers);
}
