import type { Authenticator, PresentedCredentials, Principal } from "@holdfast/common/call.ts";
import type { Clock } from "@holdfast/common/clock.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { definePart } from "#kernel/part.ts";
import type { Sealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import {
  type ApiKey,
  hashPurposes,
  type TokenCreator,
  operatorScopes,
  type Token,
  type User,
  tokenIdOf,
} from "./credential/credential.ts";
import { equalHash } from "./equal-hash.ts";
import type { CallerCache } from "./caller-cache.ts";
import type { Memberships } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";
import { intersection, type Rights } from "./scopes.ts";
import type { PasswordCheck } from "./user/password-check.ts";

export const authenticatorPart = definePart<Authenticator>("the authenticator");

export interface AuthenticatorDeps {
  readonly apiKeys: Pick<Collection<ApiKey>, "get">;
  readonly tokens: Pick<Collection<Token>, "get">;
  readonly users: Pick<Collection<User>, "get">;
  readonly organizations: Pick<Collection<Organization>, "get">;
  readonly memberships: Memberships;
  readonly rights: Pick<Rights, "roleScopes">;
  readonly passwords: PasswordCheck;
  readonly callerCache: CallerCache;
  /** Called for each valid key and token. */
  readonly onUse: (id: string, organizationId: string, source: string) => void;
  readonly sealer: Sealer;
  readonly clock: Clock;
}

/** A caller, and the expiry of its credential; null: it does not expire. */
interface Checked {
  readonly principal: Principal;
  readonly endsAt: number | null;
}

/**
 * Identifies callers from collections in memory: a revoked credential is refused on every replica within the delay of a
 * watch event. Generated secrets have at least 128 random bits, so a fast keyed hash guards them; people's passwords
 * have a slow one (password-check.ts).
 */
export function createAuthenticator(deps: AuthenticatorDeps): Authenticator {
  async function check(credentials: PresentedCredentials): Promise<Principal> {
    const record = deps.callerCache.recorder();
    const checked = await checkedOf(credentials, deps);
    if (checked === undefined)
      throw new HoldfastError("UNAUTHENTICATED", "The credential is missing, unknown or no longer valid.");
    const { principal, endsAt } = checked;
    const { organization } = credentials;
    if (organization !== undefined && organization !== principal.organizationId) throw foreignOrganization();
    record(credentials, principal, endsAt);
    return principal;
  }

  return {
    async authenticate(credentials) {
      const principal = deps.callerCache.get(credentials) ?? (await check(credentials));
      if (principal.kind !== "user" && principal.organizationId !== undefined)
        deps.onUse(principal.id, principal.organizationId, credentials.source);
      return principal;
    },
  };
}

async function checkedOf(
  { authorization = "", organization, source }: PresentedCredentials,
  deps: AuthenticatorDeps,
): Promise<Checked | undefined> {
  const space = authorization.indexOf(" ");
  const scheme = authorization.slice(0, space).toLowerCase();
  const value = authorization.slice(space + 1).trim();
  if (scheme === "bearer") return checkToken(value, deps);
  if (scheme !== "basic") return undefined;
  const decoded = Buffer.from(value, "base64").toString("utf8");
  const colon = decoded.indexOf(":");
  if (colon === -1) return undefined;
  const [name, secret] = [decoded.slice(0, colon), decoded.slice(colon + 1)];
  if (name.startsWith("hfk_")) return checkKey(name, secret, deps);
  if (name.length > 64 || secret.length > 256) return undefined;
  const user = await deps.passwords.verify(name, secret, source);
  return user && { principal: userPrincipal(user.object, organization, deps), endsAt: null };
}

function checkKey(id: string, secret: string, deps: AuthenticatorDeps): Checked | undefined {
  const key = deps.apiKeys.get(id)?.object;
  // The hash is computed for unknown ids too, so that timing does not reveal which ids exist.
  const presented = deps.sealer.keyedHash(hashPurposes.apiKey, secret);
  const current = equalHash(key?.spec.secretHash, presented);
  const previous = equalHash(key?.spec.previous?.secretHash, presented);
  if (key === undefined || !isLive(key, deps)) return undefined;
  const { scopes, expiresAt } = key.spec;
  const endsAt = current ? expiresAt : Math.min(key.spec.previous?.expiresAt ?? 0, expiresAt ?? Infinity);
  if (!current && (!previous || isExpired(endsAt, deps.clock))) return undefined;
  const { organizationId } = key.metadata;
  return { principal: { kind: "api_key", id, name: id, organizationId, scopes: new Set(scopes), expiresAt }, endsAt };
}

function checkToken(text: string, deps: AuthenticatorDeps): Checked | undefined {
  if (!text.startsWith("hft_")) return undefined;
  const presented = deps.sealer.keyedHash(hashPurposes.token, text);
  const id = tokenIdOf(text);
  const byId = id === undefined ? undefined : deps.tokens.get(id)?.object;
  const matches = equalHash(byId?.spec.secretHash, presented);
  // Tokens of the bootstrap file are found by their hash.
  const token = matches ? byId : deps.tokens.get(presented)?.object;
  if (token === undefined || !isLive(token, deps)) return undefined;
  const scopes = scopesOfToken(token, deps);
  if (scopes === undefined) return undefined;
  const { id: tokenId, name, organizationId } = token.metadata;
  const { resources, expiresAt } = token.spec;
  const limits = resources && { resources };
  return {
    principal: { kind: "token", id: tokenId, name, organizationId, scopes, expiresAt, ...limits },
    endsAt: expiresAt,
  };
}

/** The token's current scopes; undefined when its creator has lost all access. */
function scopesOfToken({ metadata, spec }: Token, deps: AuthenticatorDeps): ReadonlySet<string> | undefined {
  if (spec.creator === undefined) return new Set(spec.scopes);
  const granted = scopesOfCreator(spec.creator, metadata.organizationId, deps);
  return granted && intersection(spec.scopes, granted);
}

function scopesOfCreator(
  { kind, id, memberSince, tokenGeneration = 0 }: TokenCreator,
  organizationId: string,
  deps: AuthenticatorDeps,
): ReadonlySet<string> | undefined {
  switch (kind) {
    case "user": {
      const membership = deps.memberships.get(organizationId, id)?.object;
      if ((deps.users.get(id)?.object.spec.tokenGeneration ?? 0) !== tokenGeneration) return undefined;
      if (memberSince !== undefined && membership?.metadata.createdAt !== memberSince) return undefined;
      return membership && deps.rights.roleScopes[membership.spec.role];
    }
    case "api_key": {
      const key = deps.apiKeys.get(id)?.object;
      return key !== undefined && isLive(key, deps) ? new Set(key.spec.scopes) : undefined;
    }
    case "token": {
      const token = deps.tokens.get(id)?.object;
      return token !== undefined && isLive(token, deps) ? scopesOfToken(token, deps) : undefined;
    }
  }
}

function userPrincipal({ metadata, spec }: User, requestedId: string | undefined, deps: AuthenticatorDeps): Principal {
  const { id } = metadata;
  const mine = deps.memberships
    .of(id)
    .filter(({ metadata: { organizationId } }) => deps.organizations.get(organizationId) !== undefined);
  const acting =
    requestedId === undefined
      ? mine.length === 1
        ? mine[0]
        : undefined
      : mine.find((each) => each.metadata.organizationId === requestedId);
  const ofRole = acting === undefined ? [] : deps.rights.roleScopes[acting.spec.role];
  return {
    kind: "user",
    id,
    name: id,
    organizationId: acting?.metadata.organizationId,
    scopes: new Set([...ofRole, ...(spec.operator ? operatorScopes : [])]),
    needsOrganization: acting === undefined && mine.length > 1,
  };
}

function foreignOrganization(): HoldfastError {
  const detail = "Holdfast-Organization names an organization that the credential is not of.";
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
