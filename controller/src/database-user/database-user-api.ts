import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AnyMessage, type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import type { EngineUserState } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import {
  type DatabasePassword,
  DatabasePasswordSchema,
  type DatabaseUser,
  DatabaseUserRole,
  DatabaseUserSchema,
  DatabaseUserService,
} from "@holdfast/proto/holdfast/v1/database_user_pb.ts";
import { create } from "@bufbuild/protobuf";
import { auditOf } from "../access/caller.ts";
import { type Cursors, defaultPageSize } from "../access/cursor.ts";
import { pageByName } from "../access/page-by-name.ts";
import type { EngineTasks } from "../managed-service/engine-task.ts";
import { defaultUser, type ManagedServiceObject } from "../managed-service/managed-service.ts";
import type { ServiceAccess } from "../managed-service/service-access.ts";
import { createKeyedMutex } from "../runtime/keyed-mutex.ts";
import type { Sealer } from "../secrets/sealer.ts";
import type { Collection } from "../store/collection.ts";
import { keyOf } from "../store/resource.ts";
import { retryConflict } from "../store/retry-conflict.ts";
import type { NewAudit } from "../outbox/outbox-entry.ts";
import type { UnitOfWork } from "../store/unit-of-work.ts";
import { type DatabaseUserObject, databaseUserId } from "./database-user.ts";
import { newUser } from "./new-user.ts";

export interface DatabaseUserApiDeps {
  readonly begin: () => UnitOfWork;
  readonly users: Collection<DatabaseUserObject>;
  readonly access: ServiceAccess;
  readonly tasks: EngineTasks;
  readonly cursors: Cursors;
  readonly sealer: Sealer;
  readonly clock: Clock;
  /** Resolves when the entry is in history. */
  readonly auditNow: (entry: NewAudit) => Promise<void>;
}

interface PutUser {
  readonly service: ManagedServiceObject;
  readonly username: string;
  readonly role: DatabaseUserObject["spec"]["role"];
  /** How audit names it. */
  readonly action: string;
}

// biome-ignore format: a table, aligned so that it reads as one
const roles: readonly (readonly [DatabaseUserRole, string])[] = [
  [DatabaseUserRole.ADMIN,     "admin"],
  [DatabaseUserRole.READWRITE, "readwrite"],
  [DatabaseUserRole.READONLY,  "readonly"],
  [DatabaseUserRole.CUSTOM,    "custom"],
];

/** The RPCs of users inside an engine. The engine is asked each time; only passwords are kept here. */
export function createDatabaseUserApi(deps: DatabaseUserApiDeps): ServedService {
  const { access, tasks } = deps;
  // The engine and the store change one after the other, so two requests for one user take turns.
  const changing = createKeyedMutex();

  async function engineUsers(service: ManagedServiceObject, call: Call): Promise<EngineUserState[]> {
    const input = { case: "listEngineUsers", value: { $typeName: "holdfast.agent.v1.ListEngineUsers" } } as const;
    return (await tasks.run(service, input, call.signal)).users;
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

  function message(service: ManagedServiceObject, user: EngineUserState): DatabaseUser {
    const kept = deps.users.get(databaseUserId(service.metadata.id, user.username))?.object;
    return create(DatabaseUserSchema, {
      serviceId: service.metadata.id,
      username: user.username,
      role: roles.find(([, name]) => name === user.role)?.[0] ?? DatabaseUserRole.CUSTOM,
      managed: kept !== undefined,
      ...(kept === undefined ? {} : { createdAt: timestampFromMs(kept.metadata.createdAt) }),
    });
  }

  /** Gives the engine a verifier, then keeps the password: a crash between shows as a password that is not known. */
  async function putUser<Answer extends AnyMessage>(
    { service, username, role, action }: PutUser,
    call: Call,
    answerOf: (user: DatabaseUserObject, password: string) => Answer,
  ): Promise<Answer> {
    const { id: serviceId, organizationId } = service.metadata;
    const now = deps.clock.now();
    const { user, password } = newUser({
      serviceId,
      organizationId,
      username,
      role,
      engine: service.spec.databaseType,
      sealer: deps.sealer,
      now,
    });
    const { verifier } = user.spec;
    const engineUser = { $typeName: "holdfast.agent.v1.EngineUser", username, role, verifier } as const;
    const input = {
      case: "putEngineUser",
      value: { $typeName: "holdfast.agent.v1.PutEngineUser", user: engineUser },
    } as const;
    await tasks.run(service, input, call.signal);
    const answer = answerOf(user, password);
    const revision = await retryConflict(call.signal, async () => {
      // A service that is forgotten meanwhile takes its users with it; none may come after.
      const { modRevision } = access.require(serviceId, call);
      const before = await deps.users.fresh(user.metadata.id, call.signal);
      const unit = deps.begin();
      unit.onlyWhile({ key: keyOf("managed-service", serviceId), modRevision });
      if (before === undefined) unit.create("database-user", user);
      else unit.update("database-user", before, withAgeOf(before.object, user));
      unit.audit(auditOf(call, action, "database-user", user.metadata.id));
      unit.answer(call, answer);
      return unit.commit(call.signal);
    });
    await deps.users.reached(revision, 1_000);
    return answer;
  }

  function passwordMessage(service: ManagedServiceObject, username: string, password: string): DatabasePassword {
    return create(DatabasePasswordSchema, { serviceId: service.metadata.id, username, password });
  }

  const handlers: Handlers<typeof DatabaseUserService> = {
    listDatabaseUsers: async (request, call) => {
      const { object } = access.requireRunning(request.serviceId, call);
      const list = `database-users ${request.serviceId}`;
      const after = deps.cursors.read(call, list, null, request.cursor);
      const users = await engineUsers(object, call);
      const { items, next } = pageByName(users, (user) => user.username, after, request.limit ?? defaultPageSize);
      const nextCursor = next === undefined ? {} : { nextCursor: deps.cursors.make(call, list, null, next) };
      return { users: items.map((user) => message(object, user)), ...nextCursor };
    },

    createDatabaseUser: ({ serviceId, username, role }, call) =>
      changing(databaseUserId(serviceId, username), async () => {
        const { object } = access.requireRunning(serviceId, call);
        const taken = (await engineUsers(object, call)).some((user) => user.username === username);
        if (taken) throw new HoldfastError("NAME_TAKEN", `The engine has a user ${username} already.`);
        const name = roleName(role);
        return putUser({ service: object, username, role: name, action: "database-user.create" }, call, (user) =>
          create(DatabaseUserSchema, {
            serviceId,
            username,
            role,
            managed: true,
            createdAt: timestampFromMs(user.metadata.createdAt),
          }),
        );
      }),

    getDatabaseUser: async ({ serviceId, username }, call) => {
      const { object } = access.requireRunning(serviceId, call);
      return message(object, await requireEngineUser(object, username, call));
    },

    deleteDatabaseUser: ({ serviceId, username }, call) =>
      changing(databaseUserId(serviceId, username), async () => {
        const { object } = access.requireRunning(serviceId, call);
        if (username === defaultUser)
          throw new HoldfastError("NOT_POSSIBLE", `${defaultUser} is the service's own user and stays.`);
        await requireEngineUser(object, username, call);
        const value = { $typeName: "holdfast.agent.v1.DropEngineUser", username } as const;
        await tasks.run(object, { case: "dropEngineUser", value }, call.signal);
        const kept = await deps.users.fresh(databaseUserId(serviceId, username), call.signal);
        const unit = deps.begin();
        if (kept !== undefined) unit.remove("database-user", kept);
        unit.audit(auditOf(call, "database-user.delete", "database-user", databaseUserId(serviceId, username)));
        const revision = await unit.commit(call.signal);
        if (kept !== undefined) await deps.users.reached(revision, 1_000);
        return {};
      }),

    revealPassword: async ({ serviceId, username }, call) => {
      const { object } = access.require(serviceId, call);
      const running = object.status.state === "Running";
      if (!running && object.status.state !== "Stopped") access.requireRunning(serviceId, call);
      const kept = deps.users.get(databaseUserId(serviceId, username))?.object;
      if (kept === undefined) {
        if (running) await requireEngineUser(object, username, call);
        const key = running ? "PASSWORD_NOT_KNOWN" : "DATABASE_USER_NOT_FOUND";
        throw new HoldfastError(key, `The platform keeps no password of ${username}.`);
      }
      if (running) await checkPassword(object, kept, call);
      await deps.auditNow(auditOf(call, "database-user.reveal-password", "database-user", kept.metadata.id));
      const password = deps.sealer.open(kept.spec.sealedPassword, keyOf("database-user", kept.metadata.id));
      return passwordMessage(object, username, password);
    },

    resetPassword: ({ serviceId, username }, call) =>
      changing(databaseUserId(serviceId, username), async () => {
        const { object } = access.requireRunning(serviceId, call);
        const { role } = await requireEngineUser(object, username, call);
        if (role === "custom") {
          const detail = `${username} has rights of its own; change its password in the engine.`;
          throw new HoldfastError("NOT_POSSIBLE", detail);
        }
        const change = { service: object, username, role: asManagedRole(role), action: "database-user.reset-password" };
        return putUser(change, call, (_user, password) => passwordMessage(object, username, password));
      }),
  };
  return serve(DatabaseUserService, handlers);

  async function checkPassword(service: ManagedServiceObject, kept: DatabaseUserObject, call: Call): Promise<void> {
    const { username, verifier } = kept.spec;
    const value = { $typeName: "holdfast.agent.v1.CheckEnginePassword", username, verifier } as const;
    const { exists, matches } = await tasks.run(service, { case: "checkEnginePassword", value }, call.signal);
    if (!exists) throw new HoldfastError("DATABASE_USER_NOT_FOUND", `The engine has no user ${username}.`);
    if (!matches)
      throw new HoldfastError("PASSWORD_NOT_KNOWN", `The password of ${username} was changed in the engine; reset it.`);
  }
}

/** The user as it is now, known for as long as before. */
function withAgeOf(before: DatabaseUserObject, user: DatabaseUserObject): DatabaseUserObject {
  return { ...user, metadata: { ...user.metadata, createdAt: before.metadata.createdAt } };
}

function roleName(role: DatabaseUserRole): DatabaseUserObject["spec"]["role"] {
  return asManagedRole(roles.find(([shown]) => shown === role)?.[1] ?? "");
}

function asManagedRole(role: string): DatabaseUserObject["spec"]["role"] {
  if (role === "admin" || role === "readwrite" || role === "readonly") return role;
  throw new Error(`${role} is no role that the platform gives`);
}
