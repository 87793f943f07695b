import type {
  Authenticator,
  Precondition,
  PresentedCredentials,
  PresentedSession,
  Principal,
} from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { definePart } from "#kernel/part.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import type { Kind } from "#kernel/store/kind.ts";
import { keyOf, type Resource, type Stored } from "#kernel/store/resource.ts";
import {
  type ApiKey,
  apiKeyKind,
  hashPurposes,
  type TokenCreator,
  operatorScopes,
  type Token,
  idOfSecretText,
  tokenKind,
  type User,
  userKind,
} from "./credential/credential.ts";
import type { CredentialUseTime } from "./credential/last-use.ts";
import { equalHash } from "./equal-hash.ts";
import type { CallerCache } from "./caller-cache.ts";
import { membershipKind, type Memberships } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";
import { covers, intersection, type ScopeCatalog } from "./scopes.ts";
import { csrfTokenOf, endOf, isBound, type Session, sessionKind } from "./session/session.ts";
import type { PasswordCheck } from "./user/password-check.ts";

export const authenticatorPart = definePart<Authenticator>("the authenticator");

export interface AuthenticatorDeps {
  readonly apiKeys: Pick<Collection<ApiKey>, "get">;
  readonly tokens: Pick<Collection<Token>, "get">;
  readonly users: Pick<Collection<User>, "get">;
  readonly organizations: Pick<Collection<Organization>, "get">;
  readonly memberships: Memberships;
  readonly scopeCatalog: Pick<ScopeCatalog, "roleScopes">;
  readonly passwords: PasswordCheck;
  readonly callerCache: CallerCache;
  readonly sessions: Pick<Collection<Session>, "get">;
  /** The last use of a credential, as far as this process has seen it. */
  readonly lastUseOf: (id: string) => CredentialUseTime | undefined;
  /** Called for each valid key and token, and every few minutes for a session in use. */
  readonly onUse: (id: string, organizationId: string, source: string) => void;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

/** Time between two recorded uses of a session. */
const sessionUseMs = 5 * 60_000;

/** An authenticated caller. */
interface AuthenticatedCaller {
  readonly principal: Principal;
  /** Expiry of the credential in milliseconds since 1970; null: it does not expire. */
  readonly validUntil: number | null;
  /** Revisions of the objects that grant the rights, such as the token and its creator's membership. */
  readonly preconditions: readonly Precondition[];
}

/** Checks a credential against the current collections; returns undefined if it is not valid, or not any more. */
type CallerCheck = () => AuthenticatedCaller | undefined;

/**
 * Identifies callers from collections in memory: a revoked credential is refused on every replica within the delay of a
 * watch event. Generated secrets have at least 128 random bits, so a fast keyed hash protects them; users' passwords
 * have a slow one (password-check.ts).
 */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  async function check(credentials: PresentedCredentials): Promise<Principal> {
    const record = deps.callerCache.recorder();
    const recheck = await checkOf(credentials, deps);
    const checked = recheck?.();
    if (checked === undefined)
      throw new HoldfastError("UNAUTHENTICATED", "The credential is missing, unknown or no longer valid.");
    const { validUntil } = checked;
    const principal: Principal = {
      ...checked.principal,
      preconditions: () => currentPreconditions(principal, recheck),
    };
    const { organization } = credentials;
    if (organization !== undefined && organization !== principal.organizationId) throw foreignOrganization();
    record(credentials, principal, validUntil);
    return principal;
  }

  return {
    async authenticate(credentials) {
      const principal = deps.callerCache.get(credentials) ?? (await check(credentials));
      if (principal.kind !== "user" && principal.organizationId !== undefined)
        deps.onUse(principal.id, principal.organizationId, credentials.source);
      if (principal.sessionId !== undefined) recordSession(principal.sessionId, credentials.source, deps);
      return principal;
    },
  };
}

/** A console page calls every second, so a use is recorded every five minutes, and from each new address. */
function recordSession(id: string, source: string, { lastUseOf, onUse, clock }: AuthenticatorDeps): void {
  const last = lastUseOf(id);
  if (last === undefined || last.source !== source || last.at + sessionUseMs <= clock.now()) onUse(id, "", source);
}

/**
 * The preconditions of a caller whose organization, scopes and, for a user, token binding are still the authenticated
 * ones.
 */
function currentPreconditions(before: Principal, recheck: CallerCheck | undefined): readonly Precondition[] {
  const current = recheck?.();
  const now = current?.principal;
  const isValid =
    now !== undefined &&
    now.organizationId === before.organizationId &&
    now.tokenBinding?.tokenGeneration === before.tokenBinding?.tokenGeneration &&
    now.tokenBinding?.memberSince === before.tokenBinding?.memberSince &&
    [...before.scopes].every((scope) => covers(now.scopes, scope));
  if (current !== undefined && isValid) return current.preconditions;
  throw new HoldfastError("UNAUTHENTICATED", "The credential expired, or lost a scope, during the request.");
}

/** Verifies a password here; the returned check of other credentials has their keyed hash, never the secret. */
async function checkOf(
  { authorization = "", organization, session, source }: PresentedCredentials,
  deps: AuthenticatorDeps,
): Promise<CallerCheck | undefined> {
  if (authorization === "" && session !== undefined) return sessionCheck(session, organization, deps);
  const space = authorization.indexOf(" ");
  const scheme = authorization.slice(0, space).toLowerCase();
  const value = authorization.slice(space + 1).trim();
  if (scheme === "bearer") return tokenCheck(value, deps);
  if (scheme !== "basic") return undefined;
  const decoded = Buffer.from(value, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon === -1) return undefined;
  const [name, secret] = [decoded.slice(0, colon), decoded.slice(colon + 1)];
  if (name.startsWith("hfk_")) return keyCheck(name, secret, deps);
  if (name.length > 64 || secret.length > 256) return undefined;
  const user = await deps.passwords.verify(name, secret, source);
  return user && (() => checkUser(user.object, organization, deps));
}

function keyCheck(id: string, secret: string, deps: AuthenticatorDeps): CallerCheck {
  // The hash is computed for unknown ids too, so that timing does not reveal which ids exist.
  const presented = deps.sealer.keyedHash(hashPurposes.apiKey, secret);
  return () => checkKey(id, presented, deps);
}

function checkKey(id: string, presented: string, deps: AuthenticatorDeps): AuthenticatedCaller | undefined {
  const stored = deps.apiKeys.get(id);
  const key = stored?.object;
  const current = equalHash(key?.spec.secretHash, presented);
  const previous = equalHash(key?.spec.previous?.secretHash, presented);
  if (stored === undefined || key === undefined || !isLive(key, deps)) return undefined;
  const { scopes, expiresAt } = key.spec;
  const validUntil = current ? expiresAt : Math.min(key.spec.previous?.expiresAt ?? 0, expiresAt ?? Infinity);
  if (!current && (!previous || isExpired(validUntil, deps.clock))) return undefined;
  const { organizationId } = key.metadata;
  return {
    principal: { kind: "api_key", id, name: id, organizationId, scopes: new Set(scopes), expiresAt },
    validUntil,
    preconditions: [preconditionOf(apiKeyKind, stored)],
  };
}

function tokenCheck(text: string, deps: AuthenticatorDeps): CallerCheck | undefined {
  if (!text.startsWith("hft_")) return undefined;
  const presented = deps.sealer.keyedHash(hashPurposes.token, text);
  const id = idOfSecretText("hft_", text);
  return () => checkToken(id, presented, deps);
}

function checkToken(
  id: string | undefined,
  presented: string,
  deps: AuthenticatorDeps,
): AuthenticatedCaller | undefined {
  const byId = id === undefined ? undefined : deps.tokens.get(id);
  const matches = equalHash(byId?.object.spec.secretHash, presented);
  // Tokens of the bootstrap file are found by their hash.
  return callerOfToken(matches ? byId : deps.tokens.get(presented), deps);
}

function callerOfToken(stored: Stored<Token> | undefined, deps: AuthenticatorDeps): AuthenticatedCaller | undefined {
  const grant = grantOfToken(stored, deps);
  if (stored === undefined || grant === undefined) return undefined;
  const { scopes, preconditions } = grant;
  const token = stored.object;
  const { id: tokenId, name, organizationId } = token.metadata;
  const { resources, expiresAt } = token.spec;
  const limits = resources && { resources };
  return {
    principal: { kind: "token", id: tokenId, name, organizationId, scopes, expiresAt, ...limits },
    validUntil: expiresAt,
    preconditions,
  };
}

/** The user of a browser's session, or the token whose code opened it. Throws CSRF_TOKEN_INVALID. */
function sessionCheck(
  { secret, csrfToken = "", isRead }: PresentedSession,
  organization: string | undefined,
  deps: AuthenticatorDeps,
): CallerCheck {
  const presented = deps.sealer.keyedHash(hashPurposes.browserSession, secret);
  const id = idOfSecretText("hfb_", secret);
  return () => {
    const stored = id === undefined ? undefined : deps.sessions.get(id);
    if (stored === undefined || !equalHash(stored.object.spec.secretHash, presented)) return undefined;
    const checked = checkSession(stored, organization, deps);
    if (checked !== undefined && !isRead && !equalHash(csrfTokenOf(deps.sealer, stored.object), csrfToken))
      throw new HoldfastError("CSRF_TOKEN_INVALID", "The request has a session, but not its CSRF token.");
    return checked;
  };
}

function checkSession(
  stored: Stored<Session>,
  organization: string | undefined,
  deps: AuthenticatorDeps,
): AuthenticatedCaller | undefined {
  const { metadata, spec } = stored.object;
  const end = endOf(stored.object, deps.lastUseOf(metadata.id)?.at);
  const user = deps.users.get(spec.userId);
  if (user === undefined || !isBound(spec, user) || isExpired(end, deps.clock)) return undefined;
  const caller =
    spec.tokenId === undefined
      ? callerOfUser(user, organization, deps)
      : callerOfToken(deps.tokens.get(spec.tokenId), deps);
  return (
    caller && {
      principal: { ...caller.principal, sessionId: metadata.id },
      validUntil: Math.min(end, caller.validUntil ?? Infinity),
      preconditions: [...caller.preconditions, preconditionOf(sessionKind, stored)],
    }
  );
}

/** Scopes, and the revisions of the objects that grant them. */
interface Grant {
  readonly scopes: ReadonlySet<string>;
  readonly preconditions: readonly Precondition[];
}

/** The token's current scopes; undefined if it expired, was deleted, or its creator has lost all access. */
function grantOfToken(token: Stored<Token> | undefined, deps: AuthenticatorDeps): Grant | undefined {
  if (token === undefined || !isLive(token.object, deps)) return undefined;
  const { metadata, spec } = token.object;
  const own = preconditionOf(tokenKind, token);
  if (spec.creator === undefined) return { scopes: new Set(spec.scopes), preconditions: [own] };
  const grant = grantOfCreator(spec.creator, metadata.organizationId, deps);
  return grant && { scopes: intersection(spec.scopes, grant.scopes), preconditions: [own, ...grant.preconditions] };
}

function grantOfCreator(
  { kind, id, memberSince, tokenGeneration = 0 }: TokenCreator,
  organizationId: string,
  deps: AuthenticatorDeps,
): Grant | undefined {
  switch (kind) {
    case "user": {
      const user = deps.users.get(id);
      const membership = deps.memberships.get(organizationId, id);
      if ((user?.object.spec.tokenGeneration ?? 0) !== tokenGeneration || membership === undefined) return undefined;
      if (memberSince !== undefined && membership.object.metadata.createdAt !== memberSince) return undefined;
      return {
        scopes: new Set(deps.scopeCatalog.roleScopes[membership.object.spec.role]),
        preconditions: [
          { key: keyOf(userKind, id), modRevision: user?.modRevision ?? 0n },
          preconditionOf(membershipKind, membership),
        ],
      };
    }
    case "api_key": {
      const key = deps.apiKeys.get(id);
      if (key === undefined || !isLive(key.object, deps)) return undefined;
      return { scopes: new Set(key.object.spec.scopes), preconditions: [preconditionOf(apiKeyKind, key)] };
    }
    case "token":
      return grantOfToken(deps.tokens.get(id), deps);
  }
}

function preconditionOf<R extends Resource<unknown, unknown>>(
  kind: Kind<R>,
  { object, modRevision }: Stored<R>,
): Precondition {
  return { key: keyOf(kind, object.metadata.id), modRevision };
}

/** The user with the current rights; undefined if the password was changed after its verification. */
function checkUser(
  { metadata: { id }, spec: verified }: User,
  organization: string | undefined,
  deps: AuthenticatorDeps,
): AuthenticatedCaller | undefined {
  const user = deps.users.get(id);
  if (user === undefined || user.object.spec.passwordHash !== verified.passwordHash) return undefined;
  return callerOfUser(user, organization, deps);
}

function callerOfUser(
  user: Stored<User>,
  organization: string | undefined,
  deps: AuthenticatorDeps,
): AuthenticatedCaller {
  const { id } = user.object.metadata;
  const principal = userPrincipal(user.object, organization, deps);
  const { organizationId } = principal;
  const membership = organizationId === undefined ? undefined : deps.memberships.get(organizationId, id);
  const memberSince = membership && { memberSince: membership.object.metadata.createdAt };
  return {
    principal: {
      ...principal,
      tokenBinding: { tokenGeneration: user.object.spec.tokenGeneration ?? 0, ...memberSince },
    },
    validUntil: null,
    preconditions: [
      preconditionOf(userKind, user),
      ...(membership ? [preconditionOf(membershipKind, membership)] : []),
    ],
  };
}

function userPrincipal({ metadata, spec }: User, requestedId: string | undefined, deps: AuthenticatorDeps): Principal {
  const { id } = metadata;
  const ownMemberships = deps.memberships
    .of(id)
    .filter(({ metadata: { organizationId } }) => deps.organizations.get(organizationId) !== undefined);
  const acting =
    requestedId === undefined
      ? ownMemberships.length === 1
        ? ownMemberships[0]
        : undefined
      : ownMemberships.find((each) => each.metadata.organizationId === requestedId);
  const ofRole = acting === undefined ? [] : deps.scopeCatalog.roleScopes[acting.spec.role];
  return {
    kind: "user",
    id,
    name: id,
    organizationId: acting?.metadata.organizationId,
    scopes: new Set([...ofRole, ...(spec.operator ? operatorScopes : [])]),
    needsOrganization: acting === undefined && ownMemberships.length > 1,
  };
}

function foreignOrganization(): HoldfastError {
  const detail = "The header Holdfast-Organization names an organization that the credential does not belong to.";
  const field = "Holdfast-Organization";
  return new HoldfastError("INVALID_REQUEST", detail, {
    errors: [{ field, pointer: null, code: "unknown", detail: "is not an organization of this credential" }],
  });
}

/** True if the credential has not expired and its organization still exists. */
function isLive({ metadata, spec }: ApiKey | Token, { organizations, clock }: AuthenticatorDeps): boolean {
  return organizations.get(metadata.organizationId) !== undefined && !isExpired(spec.expiresAt, clock);
}

function isExpired(expiresAt: number | null, clock: Clock): boolean {
  return expiresAt !== null && expiresAt <= clock.now();
}
