import { createHash, createHmac } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { normalizedAddress } from "@holdfast/common/auth-schema/names.ts";
import type { Call, Handlers } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { lookUp } from "@holdfast/common/look-up.ts";
import { AddAuthUserSchema, ReadAuthRowsSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { type AppAuthService, AuthUserSchema } from "@holdfast/proto/holdfast/v1/app_auth_pb.ts";
import type { Cursors } from "#kernel/page/cursor.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { requireCapacity } from "#kernel/store/quota.ts";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import { auditOf } from "#access/caller.ts";
import { mutate } from "#access/mutate.ts";
import type { AuditedActs } from "#kernel/outbox/audited-acts.ts";
import type { UnitOfWork } from "#kernel/store/unit-of-work.ts";
import type { TaskIds } from "#operation/task/task-ids.ts";
import type { EngineTasks } from "#services/service/engine-task.ts";
import type { ManagedServiceObject } from "#services/service/managed-service.ts";
import { appKind } from "../app/app.ts";
import type { AuthObject } from "./auth.ts";
import type { AuthAccess } from "./auth-access.ts";
import {
  appOfRequest,
  type AuthRequestObject,
  authRequestKind,
  type AuthWork,
  requestQuota,
  requestTypes,
} from "./auth-request.ts";
import type { AuthSecrets } from "./auth-secrets.ts";
import { isAddress } from "./checked-auth.ts";

interface Deps {
  readonly access: AuthAccess;
  readonly requests: Collection<AuthRequestObject>;
  readonly services: Pick<Collection<ManagedServiceObject>, "get">;
  readonly tasks: EngineTasks;
  readonly taskIds: TaskIds;
  readonly secrets: Pick<AuthSecrets, "open">;
  readonly sealer: Sealer;
  readonly cursors: Cursors;
  readonly begin: () => UnitOfWork;
  readonly auditedActs: Pick<AuditedActs, "act">;
  readonly clock: Clock;
  readonly newId: () => string;
}

type UserHandlers = Pick<
  Handlers<typeof AppAuthService>,
  | "revokeAuthSession"
  | "eraseAuthUser"
  | "deleteAuthUser"
  | "createAuthUser"
  | "listAuthUsers"
  | "listAuthSessions"
  | "listAuthEvents"
>;

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The RPCs of an app's end users, who are stored only in the attached database. */
export function userHandlers(deps: Deps): UserHandlers {
  const { access, requests, tasks, taskIds, sealer, cursors, clock } = deps;

  async function submit(auth: AuthObject, work: (id: string) => AuthWork, call: Call): Promise<{ taskId: string }> {
    const id = deps.newId();
    const { serviceId, databaseName } = auth.spec;
    const appId = auth.metadata.id;
    const requested = work(id);
    const earlier = requests.by(appOfRequest, appId).map(({ object }) => object);
    requireCapacity(requestQuota, earlier, "The app has");
    const request: AuthRequestObject = {
      metadata: newMetadata(id, clock.now(), { organizationId: auth.metadata.organizationId }),
      spec: { appId, serviceId, databaseName, ...requested },
      status: { endedAt: null, found: false, error: null },
    };
    const taskId = taskIds.seal(call, { type: requestTypes[requested.kind], serviceId, key: id, detail: appId });
    const mutation = { action: `app-auth.user.${requested.kind}`, kind: appKind.name, visibleIn: [requests] };
    return mutate(deps, call, mutation, (unit) => {
      unit.create(authRequestKind, request);
      return { id: appId, result: { taskId } };
    });
  }

  function erase(auth: AuthObject, user: { userId: string } | { email: string }, call: Call) {
    if ("userId" in user) return submit(auth, () => ({ kind: "erase", userId: user.userId.toLowerCase() }), call);
    const email = normalizedAddress(user.email);
    const secret = deps.secrets.open(auth.metadata.id, auth.spec.sealedSecret);
    const emailDigest = createHmac("sha256", secret).update(`erased address ${email}`).digest("hex");
    return submit(
      auth,
      (id) => ({ kind: "erase", sealedEmail: sealer.seal(email, keyOf(authRequestKind, id)), emailDigest }),
      call,
    );
  }

  async function rows(
    auth: AuthObject,
    requested: { table: string; userId?: string; email?: string; after: string | undefined; limit: number },
    call: Call,
  ) {
    const service = deps.services.get(auth.spec.serviceId)?.object;
    if (service === undefined) throw new HoldfastError("SERVICE_NOT_FOUND", "The service with the users was deleted.");
    const value = create(ReadAuthRowsSchema, {
      ...requested,
      after: requested.after ?? "",
      database: auth.spec.databaseName,
    });
    const found = await tasks.run(service, { case: "readAuthRows", value }, call.signal);
    return {
      rows: found.rows.map((row) => JSON.parse(row) as Row),
      next: found.nextAfter === "" ? undefined : found.nextAfter,
    };
  }

  return {
    revokeAuthSession: async ({ appId, sessionId }, call) => {
      const auth = access.require(appId, call).object;
      return submit(auth, () => ({ kind: "revoke", sessionId: sessionId.toLowerCase() }), call);
    },

    async eraseAuthUser({ appId, email, userId }, call) {
      const auth = access.require(appId, call).object;
      if ((email === undefined) === (userId === undefined))
        throw invalid({ field: "user_id", code: "one_of", detail: "or email: one of them must be given" });
      return erase(auth, userId === undefined ? { email: checkedAddress("email", email ?? "") } : { userId }, call);
    },

    async deleteAuthUser({ appId, emailOrUserId: addressOrId }, call) {
      const auth = access.require(appId, call).object;
      return erase(
        auth,
        uuid.test(addressOrId) ? { userId: addressOrId } : { email: checkedAddress("email_or_user_id", addressOrId) },
        call,
      );
    },

    async createAuthUser({ appId, email: requestedEmail }, call) {
      const auth = access.active(appId, call).object;
      const email = normalizedAddress(checkedAddress("email", requestedEmail));
      const service = deps.services.get(auth.spec.serviceId)?.object;
      if (service === undefined)
        throw new HoldfastError("SERVICE_NOT_FOUND", "The service with the users was deleted.");
      const userId = userIdOf(call, sealer) ?? deps.newId();
      const value = create(AddAuthUserSchema, { database: auth.spec.databaseName, userId, email });
      await deps.auditedActs.act(auditOf(call, "app-auth.user.create", appKind.name, appId), async () => {
        const { added } = await tasks.run(service, { case: "addAuthUser", value }, call.signal);
        if (!added) throw new HoldfastError("USER_EXISTS", "The app has a user with this address.");
      });
      const user = { id: userId, email, emailVerified: false, createdAt: timestampFromMs(clock.now()) };
      return create(AuthUserSchema, user);
    },

    async listAuthUsers({ appId, email, ...requested }, call) {
      const auth = access.require(appId, call).object;
      const emailFilter = email === undefined ? "" : normalizedAddress(email);
      const page = cursors.open(call, `app users ${appId}`, sealer.keyedHash("page of users", emailFilter), requested);
      const found = await rows(auth, { table: "users", email: emailFilter, ...page }, call);
      return {
        users: found.rows.map((row) => ({
          id: text(row, "id"),
          email: text(row, "email"),
          emailVerified: row["email_verified"] === true,
          ...timesOf(row, { created_at: "createdAt", last_sign_in_at: "lastSignInAt" }),
        })),
        ...page.next(found.next),
      };
    },

    async listAuthSessions({ appId, userId, ...requested }, call) {
      const auth = access.require(appId, call).object;
      const page = cursors.open(call, `app sessions ${appId}`, userId, requested);
      const found = await rows(auth, { table: "sessions", userId, ...page }, call);
      return {
        sessions: found.rows.map((row) => ({
          id: text(row, "id"),
          ...timesOf(row, {
            created_at: "createdAt",
            last_seen_at: "lastSeenAt",
            expires_at: "expiresAt",
            revoked_at: "revokedAt",
          }),
          ...textsOf(row, { user_agent: "userAgent", ip: "ip" }),
        })),
        ...page.next(found.next),
      };
    },

    async listAuthEvents({ appId, ...requested }, call) {
      const auth = access.require(appId, call).object;
      const page = cursors.open(call, `app events ${appId}`, null, requested);
      const found = await rows(auth, { table: "events", ...page }, call);
      return {
        events: found.rows.map((row) => ({
          id: text(row, "id"),
          type: text(row, "type"),
          ...timesOf(row, { occurred_at: "occurredAt" }),
          ...textsOf(row, { user_id: "userId", client_id: "clientId", ip: "ip" }),
        })),
        ...page.next(found.next),
      };
    },
  };
}

/**
 * The id of a new user, derived from the Idempotency-Key so that a retry after a lost response creates the same user.
 */
function userIdOf({ idempotency }: Call, sealer: Pick<Sealer, "keyedHash">): string | undefined {
  if (idempotency === undefined) return undefined;
  const { scope, key, bodyHash } = idempotency;
  const hex = createHash("sha256")
    .update(sealer.keyedHash("id of a user", `${scope}\n${key}\n${bodyHash}`))
    .digest("hex");
  // UUID version 8 is vendor-specific (RFC 9562 section 5.8).
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`;
}

type Row = Readonly<Record<string, unknown>>;

function checkedAddress(field: string, text: string): string {
  if (isAddress(text.trim())) return text;
  throw invalid({ field, code: "invalid_value", detail: "must be one plain address" });
}

function text(row: Row, name: string): string {
  const value = lookUp(row, name);
  return typeof value === "string" ? value : "";
}

function textsOf<N extends string>(row: Row, names: Readonly<Record<string, N>>): Partial<Record<N, string>> {
  const found = Object.entries(names).flatMap(([from, to]) => {
    const value = lookUp(row, from);
    return typeof value === "string" ? [[to, value]] : [];
  });
  return Object.fromEntries(found) as Partial<Record<N, string>>;
}

function timesOf<N extends string>(row: Row, names: Readonly<Record<string, N>>) {
  const found = Object.entries(textsOf(row, names)).map(([to, at]) => [to, timestampFromMs(Date.parse(String(at)))]);
  return Object.fromEntries(found) as Partial<Record<N, ReturnType<typeof timestampFromMs>>>;
}
