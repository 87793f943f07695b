import { randomBytes } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { EmptySchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type Call, type Handlers, type ServedService, serve } from "@holdfast/common/call.ts";
import { HoldfastError, invalid } from "@holdfast/common/errors.ts";
import { expiredSessionCookie, sessionCookie } from "@holdfast/common/session-cookie.ts";
import {
  type CreateSessionRequest,
  CurrentSessionSchema,
  SessionCodeSchema,
  type Session as SessionMessage,
  SessionSchema,
  SessionService,
} from "@holdfast/proto/holdfast/v1/session_pb.ts";
import { keyOf, newMetadata, type Resource, type Stored } from "#kernel/store/resource.ts";
import type { Kind } from "#kernel/store/kind.ts";
import type { Changes } from "#kernel/store/unit-of-work.ts";
import type { AccessApiDeps } from "../access-api-deps.ts";
import { principalOf, requireScope, requireUnlimited } from "../caller.ts";
import { hashPurposes, newSecretText, tokenKind, type User, userKind } from "../credential/credential.ts";
import { mutate } from "../mutate.ts";
import { organizationsOf } from "../organization/organizations-of.ts";
import {
  bindingOf,
  codeLifetimeMs,
  codesMax,
  codesOfUser,
  csrfTokenOf,
  endOf,
  isBound,
  sessionLifetimeMs,
  type Session,
  sessionCodeKind,
  type SessionCode,
  sessionKind,
  sessionsMax,
  sessionsOfUser,
} from "./session.ts";
import type { SignInCounts } from "./sign-in-counts.ts";

const userAgentMax = 256;

/** A user who signs in, and the token that limits the session. */
interface SignIn {
  readonly user: Stored<User>;
  readonly tokenId?: string;
}

/** The RPCs of browser sessions. */
export function createSessionApi(deps: AccessApiDeps & { readonly signIns: SignInCounts }): ServedService {
  const { sessions, sessionCodes, users, tokens, lastUse, sealer, cursors, clock, signIns } = deps;

  async function byPassword(username: string, password: string, call: Call): Promise<SignIn> {
    const user = username.startsWith("hfk_") ? undefined : await deps.passwords.verify(username, password, call.source);
    if (user === undefined) throw new HoldfastError("UNAUTHENTICATED", "The user name or the password is wrong.");
    return { user };
  }

  /** Removes the code in the same transaction: of two concurrent sign-ins one is successful. */
  function byCode(unit: Changes, code: string): SignIn {
    const stored = sessionCodes.get(sealer.keyedHash(hashPurposes.sessionCode, code));
    const user = stored && users.get(stored.object.spec.userId);
    const tokenId = stored?.object.spec.tokenId;
    const token = tokenId === undefined ? undefined : tokens.get(tokenId);
    const isValid =
      stored !== undefined &&
      stored.object.spec.expiresAt > clock.now() &&
      isBound(stored.object.spec, user) &&
      (tokenId === undefined || token !== undefined);
    if (!isValid || user === undefined)
      throw new HoldfastError("UNAUTHENTICATED", "The code is unknown, used or too old; run holdfast console again.");
    unit.remove(sessionCodeKind, stored);
    if (token !== undefined) unit.onlyWhile({ key: keyOf(tokenKind, token.object.metadata.id), ...revisionOf(token) });
    return { user, ...(tokenId !== undefined && { tokenId }) };
  }

  function signInOf(unit: Changes, input: CreateSessionRequest, call: Call): SignIn | Promise<SignIn> {
    const { username, password, code } = input;
    if (code !== undefined) {
      if (username === undefined && password === undefined) return byCode(unit, code);
      throw invalid({ field: "code", code: "exclusive", detail: "must be without username and password" });
    }
    if (username === undefined)
      throw invalid({ field: "username", code: "required", detail: "is required, unless there is a code" });
    if (password === undefined) throw invalid({ field: "password", code: "required", detail: "is required" });
    return byPassword(username, password, call);
  }

  const open = (input: CreateSessionRequest, call: Call) =>
    mutate(deps, call, { action: "session.create", kind: "session", visibleIn: [sessions, users] }, async (unit) => {
      const { user, tokenId } = await signInOf(unit, input, call);
      unit.onlyWhile({ key: keyOf(userKind, user.object.metadata.id), ...revisionOf(user) });
      const now = clock.now();
      const id = deps.newId();
      const secret = newSecretText("hfb_", id);
      const tokenEnd = tokenId === undefined ? undefined : tokens.get(tokenId)?.object.spec.expiresAt;
      const session: Session = {
        metadata: newMetadata(id, now),
        spec: {
          ...bindingOf(user.object),
          secretHash: sealer.keyedHash(hashPurposes.browserSession, secret),
          expiresAt: Math.min(now + sessionLifetimeMs, tokenEnd ?? Infinity),
          source: call.source,
          userAgent: printable(call.userAgent ?? ""),
          ...(tokenId !== undefined && { tokenId }),
        },
        status: {},
      };
      replaceOldest(unit, sessionKind, sessions.by(sessionsOfUser, user.object.metadata.id), sessionsMax);
      unit.create(sessionKind, session);
      call.setHeader("Set-Cookie", sessionCookie(secret, Math.ceil((session.spec.expiresAt - now) / 1_000)));
      const actor = `user:${session.spec.userId}`;
      const { organizationId } = user.object.metadata;
      return { id, actor, organizationId, detail: session.spec.userAgent, result: currentMessage(session) };
    });

  function currentMessage(session: Session) {
    const { id } = session.metadata;
    const { userId, tokenId } = session.spec;
    const token = tokenId === undefined ? undefined : tokens.get(tokenId)?.object;
    const organizations = organizationsOf(deps, userId);
    const isVisible = (each: { readonly id: string }) => !token || each.id === token.metadata.organizationId;
    return create(CurrentSessionSchema, {
      id,
      csrfToken: csrfTokenOf(sealer, session),
      expiresAt: timestampFromMs(session.spec.expiresAt),
      user: userId,
      ...(token && { organizationId: token.metadata.organizationId }),
      organizations: organizations.filter(isVisible),
    });
  }

  /** Id of the calling user: the caller, or the creator of the caller's token. */
  function userIdOf(call: Call): string {
    const { kind, id } = principalOf(call);
    if (kind === "user") return id;
    const creator = kind === "token" ? tokens.get(id)?.object.spec.creator : undefined;
    if (creator?.kind === "user") return creator.id;
    const detail = "Sessions belong to users, and this credential does not; run holdfast login.";
    throw new HoldfastError("SCOPE_MISSING", detail);
  }

  /** The sessions of a user that have not expired, oldest first. */
  function liveOf(userId: string): Stored<Session>[] {
    const now = clock.now();
    return sessions
      .by(sessionsOfUser, userId)
      .filter(({ object }) => isBound(object.spec, users.get(userId)))
      .filter(({ object }) => endOf(object, lastUse.of(object.metadata.id)?.at) > now)
      .slice(-sessionsMax);
  }

  function messageOf(session: Session, currentId: string | undefined): SessionMessage {
    const { metadata, spec } = session;
    const use = lastUse.of(metadata.id);
    return create(SessionSchema, {
      id: metadata.id,
      createdAt: timestampFromMs(metadata.createdAt),
      expiresAt: timestampFromMs(spec.expiresAt),
      ...(use && { lastUsedAt: timestampFromMs(use.at), lastUsedFrom: use.source }),
      createdFrom: spec.source,
      userAgent: spec.userAgent,
      current: metadata.id === currentId,
    });
  }

  /** Id of the calling user; throws for a token without `keys:read`. */
  function requireOwner(call: Call): string {
    const userId = userIdOf(call);
    if (principalOf(call).kind !== "user") requireScope(call, "keys:read");
    return userId;
  }

  /** The session of the call's cookie; throws OBJECT_NOT_FOUND for any other credential. */
  function currentOf(call: Call): Stored<Session> {
    const { sessionId } = principalOf(call);
    const stored = sessionId === undefined ? undefined : sessions.get(sessionId);
    if (stored !== undefined) return stored;
    throw new HoldfastError(
      "OBJECT_NOT_FOUND",
      "The call is not authenticated by a session, but by another credential.",
    );
  }

  /** The sessions that a DeleteSession names. */
  function namedBy(id: string, call: Call): readonly Stored<Session>[] {
    const userId = requireOwner(call);
    if (id === "all") return sessions.by(sessionsOfUser, userId);
    const stored = sessions.get(id);
    if (stored?.object.spec.userId === userId) return [stored];
    throw new HoldfastError("OBJECT_NOT_FOUND", "You have no such session.");
  }

  /** Deletes the sessions. If the session of the call is one of them, its browser drops the cookie. */
  const end = (id: string, call: Call, named: () => readonly Stored<Session>[]) =>
    mutate(deps, call, { action: "session.delete", kind: "session", visibleIn: [sessions] }, async (unit) => {
      const ended = named();
      for (const each of ended) unit.remove(sessionKind, each);
      if (ended.some(({ object }) => object.metadata.id === principalOf(call).sessionId))
        call.setHeader("Set-Cookie", expiredSessionCookie);
      return { id, result: create(EmptySchema) };
    });

  const handlers: Handlers<typeof SessionService> = {
    async createSession(input, call) {
      try {
        const session = await open(input, call);
        signIns.count("ok");
        return session;
      } catch (error) {
        signIns.countError(error);
        throw error;
      }
    },

    listSessions: async (request, call) => {
      const { sessionId } = principalOf(call);
      const own = liveOf(requireOwner(call));
      const { after = "", limit, next } = cursors.open(call, "sessions", null, request);
      const rest = own.map(({ object }) => object).filter(({ metadata }) => metadata.id > after);
      const page = rest.slice(0, limit);
      const last = rest.length > limit ? page.at(-1)?.metadata.id : undefined;
      return { sessions: page.map((session) => messageOf(session, sessionId)), ...next(last) };
    },

    getCurrentSession: async (_, call) => currentMessage(currentOf(call).object),

    deleteCurrentSession: (_, call) => end(principalOf(call).sessionId ?? "current", call, () => [currentOf(call)]),

    deleteSession: ({ id }, call) => end(id, call, () => namedBy(id, call)),

    createSessionCode: (_, call) =>
      mutate(
        deps,
        call,
        { action: "session-code.create", kind: "session", visibleIn: [sessionCodes, users] },
        async (unit) => {
          const userId = userIdOf(call);
          requireUnlimited(call);
          const user = users.get(userId);
          if (user === undefined) throw new HoldfastError("OBJECT_NOT_FOUND", "There is no such user.");
          const code = `hfc_${randomBytes(24).toString("base64url")}`;
          const now = clock.now();
          const { kind, id: credentialId } = principalOf(call);
          const stored: SessionCode = {
            metadata: newMetadata(sealer.keyedHash(hashPurposes.sessionCode, code), now),
            spec: {
              ...bindingOf(user.object),
              expiresAt: now + codeLifetimeMs,
              ...(kind === "token" && { tokenId: credentialId }),
            },
            status: {},
          };
          replaceOldest(unit, sessionCodeKind, sessionCodes.by(codesOfUser, userId), codesMax);
          unit.create(sessionCodeKind, stored);
          const answer = create(SessionCodeSchema, { code, expiresAt: timestampFromMs(stored.spec.expiresAt) });
          return { id: userId, result: answer };
        },
      ),
  };
  return serve(SessionService, handlers);
}

function revisionOf({ modRevision }: Stored<unknown>): { readonly modRevision: bigint } {
  return { modRevision };
}

/** Removes the oldest objects of a user, so that a new one does not exceed the limit. */
function replaceOldest<R extends Resource<unknown, unknown>>(
  unit: Changes,
  kind: Kind<R>,
  objects: readonly Stored<R>[],
  max: number,
): void {
  const oldest = objects.toSorted((a, b) => a.object.metadata.createdAt - b.object.metadata.createdAt);
  for (const each of oldest.slice(0, Math.max(0, objects.length + 1 - max))) unit.remove(kind, each);
}

/** The text of a header in printable ASCII, 256 characters at most. */
function printable(text: string): string {
  return text.replaceAll(/[^\x20-\x7e]/g, " ").slice(0, userAgentMax);
}
