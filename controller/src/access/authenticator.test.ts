import { randomBytes } from "node:crypto";
import type { PresentedSession } from "@holdfast/common/call.ts";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { beforeEach, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import type { Collection } from "#kernel/store/collection.ts";
import { createAuthenticator } from "./authenticator.ts";
import {
  type ApiKey,
  hashPurposes,
  type TokenCreator,
  type Token,
  type User,
  newSecretText,
} from "./credential/credential.ts";
import type { CredentialUseTime } from "./credential/last-use.ts";
import { createCallerCache } from "./caller-cache.ts";
import { bindingOf, csrfTokenOf, sessionIdleTimeoutMs, sessionLifetimeMs, type Session } from "./session/session.ts";
import { createMemberships, type Membership, membershipId } from "./organization/membership.ts";
import type { Organization } from "./organization/organization.ts";
import { roleScopes } from "../systems.ts";
import type { Role } from "./scopes.ts";
import { createPasswordCheck } from "./user/password-check.ts";
import { createPasswordHash } from "./user/password-hash.ts";
import { createSignInGuard } from "./user/sign-in-guard.ts";
import { createRecentSourcesInMemory } from "@holdfast/testing/controller/recent-sources-in-memory.ts";

const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
const hash = createPasswordHash(sealer);
const metadata = { name: "n", organizationId: "org-1", generation: 1, createdAt: 0, updatedAt: 0 };
const status = {};

/** Objects in memory, as a watch would keep them. */
function collectionOf<R extends { metadata: { id: string } }>() {
  const objects = new Map<string, { object: R; modRevision: bigint }>();
  const subscribers = new Set<(id: string, before: R | undefined) => void>();
  let revision = 0n;
  const notify = (id: string, before: R | undefined) => {
    for (const subscriber of subscribers) subscriber(id, before);
  };
  return {
    put(object: R) {
      revision += 1n;
      const before = objects.get(object.metadata.id)?.object;
      objects.set(object.metadata.id, { object, modRevision: revision });
      notify(object.metadata.id, before);
    },
    delete(id: string) {
      const before = objects.get(id)?.object;
      objects.delete(id);
      notify(id, before);
    },
    collection: {
      get: (id: string) => objects.get(id),
      values: () => objects.values(),
      subscribe(notifyOne: (id: string, before: R | undefined) => void) {
        subscribers.add(notifyOne);
        return { close: () => subscribers.delete(notifyOne) };
      },
    } satisfies Pick<Collection<R>, "get" | "values" | "subscribe">,
  };
}

let now = 10;
const clock = { now: () => now, monotonicMs: () => now };

function setUp() {
  const apiKeys = collectionOf<ApiKey>();
  const tokens = collectionOf<Token>();
  const users = collectionOf<User>();
  const sessions = collectionOf<Session>();
  const organizations = collectionOf<Organization>();
  const memberships = collectionOf<Membership>();
  const used: string[] = [];
  const lastUses = new Map<string, CredentialUseTime>();
  let verified = 0;
  const counted = {
    ...hash,
    verify: (...given: Parameters<typeof hash.verify>) => {
      verified += 1;
      return hash.verify(...given);
    },
  };
  const passwords = createPasswordCheck({
    users: users.collection,
    hash: counted,
    guard: createSignInGuard(clock, { recentSources: createRecentSourcesInMemory() }),
    sealer,
    clock,
  });
  const authenticator = createAuthenticator({
    apiKeys: apiKeys.collection,
    tokens: tokens.collection,
    sessions: sessions.collection,
    lastUseOf: (id) => lastUses.get(id),
    users: users.collection,
    organizations: organizations.collection,
    memberships: createMemberships(memberships.collection),
    passwords,
    scopeCatalog: { roleScopes },
    callerCache: createCallerCache(
      [apiKeys, tokens, sessions, users, organizations, memberships].map(({ collection }) => collection),
      clock,
    ),
    onUse: (id, _organization, source) => {
      used.push(id);
      lastUses.set(id, { at: now, source });
    },
    sealer,
    clock,
  });
  const askBySession = (session: PresentedSession, organization?: string) =>
    authenticator.authenticate({ authorization: undefined, session, organization, source: "127.0.0.1" });
  const ask = (authorization: string | undefined, organization?: string, source = "127.0.0.1") =>
    authenticator.authenticate({ authorization, organization, source });
  for (const id of ["org-1", "org-2"])
    organizations.put({
      metadata: { ...metadata, id, organizationId: "" },
      spec: { quota: {} },
      status,
    });
  const join = (userId: string, role: Role, organizationId = "org-1", createdAt = 0) =>
    memberships.put({
      metadata: { ...metadata, createdAt, organizationId, id: membershipId(organizationId, userId), name: userId },
      spec: { role },
      status,
    });
  const leave = (userId: string, organizationId = "org-1") => memberships.delete(membershipId(organizationId, userId));
  return {
    apiKeys,
    tokens,
    users,
    organizations,
    ask,
    askBySession,
    sessions,
    join,
    leave,
    used,
    verified: () => verified,
  };
}

let at: ReturnType<typeof setUp>;
beforeEach(() => {
  now = 10;
  at = setUp();
  at.apiKeys.put(key("hfk_good", null));
  at.apiKeys.put(key("hfk_old", 10));
  at.tokens.put({
    metadata: { ...metadata, id: legacyTokenId },
    spec: { scopes: ["services:*"], expiresAt: null },
    status,
  });
  const passwordHash = sealer.keyedHash(hashPurposes.password, "pass:word");
  at.users.put({ metadata: { ...metadata, id: "admin" }, spec: { passwordHash, operator: true }, status });
  at.join("admin", "owner");
});

const keyed = (secret: string) => sealer.keyedHash(hashPurposes.apiKey, secret);
const key = (id: string, expiresAt: number | null, more: Partial<ApiKey["spec"]> = {}): ApiKey => ({
  metadata: { ...metadata, id },
  spec: { secretHash: keyed("s3cret"), scopes: ["services:read"], expiresAt, ...more },
  status,
});
const legacyTokenId = sealer.keyedHash(hashPurposes.token, "hft_good");
const basic = (name: string, secret: string) => `Basic ${Buffer.from(`${name}:${secret}`).toString("base64")}`;

function setGeneration(tokenGeneration: number): void {
  const passwordHash = sealer.keyedHash(hashPurposes.password, "pass:word");
  const spec = { passwordHash, operator: false, tokenGeneration };
  at.users.put({ metadata: { ...metadata, id: "admin" }, spec, status });
}

async function storeUser(id: string, password: string): Promise<void> {
  const spec = { passwordHash: await hash.create(password, { source: "127.0.0.1", isRecent: true }), operator: false };
  at.users.put({ metadata: { ...metadata, id }, spec, status });
}

function token(id: string, scopes: string[], creator: Omit<TokenCreator, "actor" | "depth">): string {
  const text = newSecretText("hft_", id);
  const secretHash = sealer.keyedHash(hashPurposes.token, text);
  const spec = { secretHash, scopes, expiresAt: null, creator: { ...creator, actor: "x", depth: 0 } };
  at.tokens.put({ metadata: { ...metadata, id }, spec, status });
  return `Bearer ${text}`;
}

test("a key, a token and a password with a colon each identify their caller", async () => {
  expect(await at.ask(basic("hfk_good", "s3cret"))).toMatchObject({ kind: "api_key", organizationId: "org-1" });
  expect(await at.ask("bearer hft_good")).toMatchObject({ kind: "token", organizationId: "org-1" });
  const { scopes } = await at.ask(basic("admin", "pass:word"));
  expect([...scopes]).toEqual(expect.arrayContaining(["platform:*", "organization:*"]));
  expect(at.used).toEqual(["hfk_good", legacyTokenId]);
});

test.each([
  ["nothing", undefined],
  ["an empty header", ""],
  ["another scheme", "Digest x"],
  ["text that is not base64 of a pair", "Basic %%%"],
  ["a pair without a colon", `Basic ${Buffer.from("hfk_good").toString("base64")}`],
  ["a wrong secret", basic("hfk_good", "s3creT")],
  ["a secret that is longer", basic("hfk_good", "s3cret ")],
  ["an unknown key", basic("hfk_none", "s3cret")],
  ["a key that has just expired", basic("hfk_old", "s3cret")],
  ["a name with a space", basic("admin ", "pass:word")],
  ["an unknown token", "Bearer hft_bad"],
  ["the stored hash of a token", `Bearer ${legacyTokenId}`],
])("%s is refused alike", async (_, authorization) => {
  const refusal = await at.ask(authorization).catch((error: unknown) => error);
  expect(refusal).toBeInstanceOf(HoldfastError);
  expect((refusal as HoldfastError).key).toBe("UNAUTHENTICATED");
});

test("a hash is computed once a second, and again immediately after any change", async () => {
  const authorization = basic("hfk_good", "s3cret");
  const first = await at.ask(authorization);
  expect(await at.ask(authorization)).toBe(first);
  expect(at.used).toHaveLength(2);
  now += 1_000;
  const second = await at.ask(authorization);
  expect(second).not.toBe(first);
  now -= 5_000;
  expect(await at.ask(authorization)).not.toBe(second);
  at.apiKeys.delete("hfk_good");
  await expect(at.ask(authorization)).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

test("a check that overlaps a change is not cached", async () => {
  await storeUser("anna", "correct horse battery");
  at.join("anna", "owner");
  const authorization = basic("anna", "correct horse battery");
  const asking = at.ask(authorization);
  at.join("anna", "viewer");
  await asking;
  expect([...(await at.ask(authorization)).scopes]).not.toContain("organization:*");
});

test("a request for a foreign organization names Holdfast-Organization as the fault", async () => {
  await expect(at.ask(basic("hfk_good", "s3cret"), "org-1")).resolves.toBeDefined();
  await expect(at.ask(basic("hfk_good", "s3cret"), "org-2")).rejects.toMatchObject({ key: "INVALID_REQUEST" });
  await expect(at.ask(basic("admin", "pass:word"), "org-2")).rejects.toMatchObject({ key: "INVALID_REQUEST" });
});

test("credentials of a deleted organization are invalid", async () => {
  at.organizations.delete("org-1");
  await expect(at.ask(basic("hfk_good", "s3cret"))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  await expect(at.ask("Bearer hft_good")).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  const operator = await at.ask(basic("admin", "pass:word"));
  expect([...operator.scopes]).toEqual(["platform:*"]);
});

test("the previous secret works until the end of its overlap", async () => {
  const previous = { secretHash: keyed("before"), expiresAt: 20 };
  at.apiKeys.put(key("hfk_turned", null, { previous }));
  for (const secret of ["before", "s3cret"])
    await expect(at.ask(basic("hfk_turned", secret))).resolves.toMatchObject({ id: "hfk_turned" });
  now = 20;
  await expect(at.ask(basic("hfk_turned", "before"))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

test("a user of several organizations acts in the requested one, with their role there", async () => {
  await storeUser("anna", "correct horse battery");
  const authorization = basic("anna", "correct horse battery");
  expect(await at.ask(authorization)).toMatchObject({ organizationId: undefined, needsOrganization: false });
  at.join("anna", "viewer");
  expect(await at.ask(authorization)).toMatchObject({ organizationId: "org-1" });
  at.join("anna", "owner", "org-2");
  expect(await at.ask(authorization)).toMatchObject({ organizationId: undefined, needsOrganization: true });
  expect((await at.ask(authorization)).scopes.size).toBe(0);
  expect((await at.ask(authorization, "org-1")).scopes.has("organization:*")).toBe(false);
  expect((await at.ask(authorization, "org-2")).scopes.has("organization:*")).toBe(true);
});

test("the slow hash runs once for many requests, and again after a change of the user", async () => {
  await storeUser("anna", "correct horse battery");
  const authorization = basic("anna", "correct horse battery");
  await Promise.all(Array.from({ length: 20 }, () => at.ask(authorization)));
  await at.ask(authorization);
  expect(at.verified()).toBe(1);
  await storeUser("anna", "another password");
  await expect(at.ask(authorization)).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  expect(at.verified()).toBe(2);
});

test("guessing slows down its source only; the owner can sign in from elsewhere", async () => {
  await storeUser("anna", "correct horse battery");
  for (let i = 0; i < 5; i += 1)
    await expect(at.ask(basic("anna", `guess ${i}`))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  // Also the right one: otherwise the response would reveal it.
  await expect(at.ask(basic("anna", "correct horse battery"))).rejects.toMatchObject({
    key: "RATE_LIMITED",
    retryAfterS: 1,
  });
  await expect(at.ask(basic("anna", "correct horse battery"), undefined, "10.0.0.1")).resolves.toBeDefined();
  await expect(at.ask(basic("hfk_good", "s3cret"))).resolves.toBeDefined();
  now += 1_001;
  await expect(at.ask(basic("anna", "correct horse battery"))).resolves.toBeDefined();
});

test("repeating a wrong password is refused without a new guess or hash", async () => {
  await storeUser("anna", "correct horse battery");
  const again = (source?: string) => at.ask(basic("anna", "an old password"), undefined, source);
  for (let i = 0; i < 20; i += 1) await expect(again()).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  expect(at.verified()).toBe(1);
  await expect(again("10.0.0.1")).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  expect(at.verified()).toBe(2);
  await storeUser("anna", "an old password");
  await expect(again()).resolves.toBeDefined();
  expect(at.verified()).toBe(3);
});

test("a user's tokens, and tokens of those, end when the password changes", async () => {
  const admin = { ...metadata, id: "admin" };
  const put = (tokenGeneration: number | undefined) =>
    at.users.put({
      metadata: admin,
      spec: { passwordHash: null, operator: true, ...(tokenGeneration !== undefined && { tokenGeneration }) },
      status,
    });
  const first = token("0199aaaa-0000-7000-8000-00000000000a", ["services:read"], { kind: "user", id: "admin" });
  const child = token("0199aaaa-0000-7000-8000-00000000000b", ["services:read"], {
    kind: "token",
    id: "0199aaaa-0000-7000-8000-00000000000a",
  });
  const second = token("0199aaaa-0000-7000-8000-00000000000c", ["services:read"], {
    kind: "user",
    id: "admin",
    tokenGeneration: 1,
  });
  const good = async () =>
    Promise.all(
      [first, child, second].map(async (text) => {
        const requests = at.ask(text);
        return requests.then(
          () => true,
          () => false,
        );
      }),
    );
  put(undefined);
  expect(await good()).toEqual([true, true, false]);
  put(1);
  expect(await good()).toEqual([false, false, true]);
  put(2);
  expect(await good()).toEqual([false, false, false]);
});

test.each<[string, () => unknown]>([
  ["their password is reset", () => setGeneration(2)],
  ["their membership ends", () => at.leave("admin")],
  [
    "they leave and join again",
    () => {
      at.leave("admin");
      at.join("admin", "owner", "org-1", 11);
    },
  ],
  ["their role is lowered", () => at.join("admin", "viewer")],
  ["they are deleted", () => at.users.delete("admin")],
])("a user's call, and one of their token, cannot commit once %s", async (_, change) => {
  setGeneration(1);
  const text = token("0199aaaa-0000-7000-8000-00000000000d", ["services:*"], {
    kind: "user",
    id: "admin",
    tokenGeneration: 1,
    memberSince: 0,
  });
  const callers = [await at.ask(basic("admin", "pass:word")), await at.ask(text)];
  expect(callers[0]).toMatchObject({ tokenBinding: { tokenGeneration: 1, memberSince: 0 } });
  const keys = callers.map((caller) => caller.preconditions?.().map(({ key }) => key.split("/").slice(-2).join("/")));
  expect(keys).toEqual([
    ["user/admin", "membership/org-1.admin"],
    ["token/0199aaaa-0000-7000-8000-00000000000d", "user/admin", "membership/org-1.admin"],
  ]);
  change();
  for (const { preconditions } of callers) expect(preconditions).toThrow(HoldfastError);
});

test("a user whose record changes in another respect stays signed in, fenced by its new revision", async () => {
  setGeneration(0);
  const { preconditions } = await at.ask(basic("admin", "pass:word"));
  const before = preconditions?.();
  setGeneration(0);
  expect(preconditions?.()).not.toEqual(before);
  expect(preconditions?.()).toHaveLength(2);
});

test("a call of a key cannot commit once the key was rotated without overlap, deleted, or has expired", async () => {
  const { preconditions } = await at.ask(basic("hfk_good", "s3cret"));
  at.apiKeys.put(key("hfk_good", null, { previous: { secretHash: keyed("s3cret"), expiresAt: 20 } }));
  expect(preconditions?.()).toHaveLength(1);
  at.apiKeys.put(key("hfk_good", null, { secretHash: keyed("another") }));
  expect(preconditions).toThrow(HoldfastError);
  at.apiKeys.put(key("hfk_good", 30));
  expect(preconditions?.()).toHaveLength(1);
  now = 30;
  expect(preconditions).toThrow(HoldfastError);
});

test("a token has at most the current scopes of its creator, and ends with it", async () => {
  at.join("anna", "admin");
  const first = "0199aaaa-0000-7000-8000-000000000001";
  const ofUser = token(first, ["services:*", "org:write"], { kind: "user", id: "anna" });
  const ofToken = token("0199aaaa-0000-7000-8000-000000000002", ["services:*"], { kind: "token", id: first });
  expect([...(await at.ask(ofUser)).scopes]).toEqual(["services:*", "org:write"]);
  at.join("anna", "viewer");
  expect([...(await at.ask(ofUser)).scopes]).toEqual(["services:read"]);
  expect([...(await at.ask(ofToken)).scopes]).toEqual(["services:read"]);
  at.leave("anna");
  await expect(at.ask(ofUser)).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  await expect(at.ask(ofToken)).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  const ofKey = token("0199aaaa-0000-7000-8000-000000000003", ["services:read"], { kind: "api_key", id: "hfk_good" });
  await expect(at.ask(ofKey)).resolves.toBeDefined();
  at.apiKeys.delete("hfk_good");
  await expect(at.ask(ofKey)).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

const sessionId = "0190f000-0000-7000-8000-000000000001";

/** Stores a session of the user and returns its secret and CSRF token. */
function session(userId: string, more: Partial<Session["spec"]> = {}): { secret: string; csrfToken: string } {
  const user = at.users.collection.get(userId)?.object;
  if (user === undefined) throw new Error(`no user ${userId}`);
  const secret = newSecretText("hfb_", sessionId);
  const secretHash = sealer.keyedHash(hashPurposes.browserSession, secret);
  const spec = {
    ...bindingOf(user),
    secretHash,
    expiresAt: now + sessionLifetimeMs,
    source: "::1",
    userAgent: "",
    ...more,
  };
  const stored: Session = { metadata: { ...metadata, id: sessionId, createdAt: now }, spec, status };
  at.sessions.put(stored);
  return { secret, csrfToken: csrfTokenOf(sealer, stored) };
}

const reading = (secret: string) => ({ secret, csrfToken: undefined, isRead: true });

test("a session acts as its user, and a change requires its CSRF token", async () => {
  const { secret, csrfToken } = session("admin");
  const principal = await at.askBySession(reading(secret));
  expect(principal).toMatchObject({ kind: "user", id: "admin", sessionId, organizationId: "org-1" });
  expect(principal.scopes.has("platform:*")).toBe(true);
  await expect(at.askBySession({ secret, csrfToken, isRead: false })).resolves.toMatchObject({ id: "admin" });
  for (const wrong of [undefined, "", `${csrfToken}0`, csrfToken.replace(/^./, "g")])
    await expect(at.askBySession({ secret, csrfToken: wrong, isRead: false })).rejects.toMatchObject({
      key: "CSRF_TOKEN_INVALID",
    });
});

test.each([
  ["another secret", (secret: string) => `${secret.slice(0, -1)}${secret.endsWith("A") ? "B" : "A"}`],
  ["a token of the same text", (secret: string) => secret.replace("hfb_", "hft_")],
  ["an unknown session", () => newSecretText("hfb_", "0190f000-0000-7000-8000-00000000000f")],
  ["an empty cookie", () => ""],
])("%s is no session", async (_, changed) => {
  const { secret } = session("admin");
  await expect(at.askBySession(reading(changed(secret)))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

test("a session ends after 12 hours without a call, and after 7 days", async () => {
  const { secret } = session("admin");
  const end = now + sessionLifetimeMs;
  for (; now < end - 1; now += sessionIdleTimeoutMs - 1) await at.askBySession(reading(secret));
  now = end - 1;
  await at.askBySession(reading(secret));
  now = end;
  await expect(at.askBySession(reading(secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  const idle = session("admin");
  await at.askBySession(reading(idle.secret));
  now += sessionIdleTimeoutMs;
  await expect(at.askBySession(reading(idle.secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

test("a use of a session is recorded every five minutes", async () => {
  const { secret } = session("admin");
  for (let second = 0; second < 301; second += 1, now += 1_000) await at.askBySession(reading(secret));
  expect(at.used).toEqual([sessionId, sessionId]);
});

test("a session ends with a change of the password, and with the deletion of its user", async () => {
  const { secret } = session("admin");
  setGeneration(1);
  await expect(at.askBySession(reading(secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  const other = session("admin");
  const user = at.users.collection.get("admin")?.object;
  at.users.delete("admin");
  await expect(at.askBySession(reading(other.secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
  // A later user of the same name.
  if (user !== undefined) at.users.put({ ...user, metadata: { ...user.metadata, createdAt: 9 } });
  await expect(at.askBySession(reading(other.secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});

test("a session by a token has the rights of the token, and ends with it", async () => {
  const id = "0190f000-0000-7000-8000-000000000002";
  token(id, ["services:read"], { kind: "user", id: "admin" });
  const { secret, csrfToken } = session("admin", { tokenId: id });
  const principal = await at.askBySession({ secret, csrfToken, isRead: false });
  expect(principal).toMatchObject({ kind: "token", id, sessionId });
  expect([...principal.scopes]).toEqual(["services:read"]);
  expect(principal.preconditions?.().map(({ key: of }) => of)).toContainEqual(expect.stringContaining(sessionId));
  at.tokens.delete(id);
  await expect(at.askBySession(reading(secret))).rejects.toMatchObject({ key: "UNAUTHENTICATED" });
});
