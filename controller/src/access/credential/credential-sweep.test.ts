import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keyOf, prefixOf } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { startTestStore, type TestStore } from "@holdfast/testing/controller/test-store.ts";
import { sweepCredentials } from "./credential-sweep.ts";
import { createLastUse } from "./last-use.ts";

let testStore: TestStore;
let store: Store;
let collections: TestStore["collections"];
let now = 10 * 86_400_000;
const clock = { now: () => now, monotonicMs: () => now };
const dayMs = 86_400_000;
const signal = new AbortController().signal;

beforeAll(async () => {
  testStore = await startTestStore(clock);
  ({ store, collections } = testStore);
});
afterAll(() => testStore?.close());

async function put(kind: string, id: string, spec: object): Promise<void> {
  const metadata = { id, name: id, organizationId: "org", generation: 1, createdAt: 0, updatedAt: 0 };
  const value = JSON.stringify({ metadata, spec, status: {} });
  await store.commit({ conditions: [], puts: [{ key: keyOf({ name: kind }, id), value }], deletes: [] });
}

const seen = async () => collections.untilRevision(await store.revision(), 60_000);
const idsOf = async (kind: string) =>
  (await store.list(prefixOf({ name: kind }), { limit: 500 })).values.map(({ key }) =>
    key.slice(prefixOf({ name: kind }).length),
  );

test("the sweep deletes tokens a day after expiry, and use records with their credential", async () => {
  await put("token", "endless", { expiresAt: null });
  await put("token", "ended-lately", { expiresAt: now - dayMs + 1 });
  await put("token", "ended-long-ago", { expiresAt: now - dayMs - 1 });
  await put("api-key", "hfk_1", { expiresAt: 1 });
  for (const id of ["endless", "hfk_1", "hfk_deleted"]) await put("credential-use", id, { at: 1, source: "::1" });
  await seen();
  await sweepCredentials({ ...collections, store, clock }, signal);
  expect(await idsOf("token")).toEqual(["ended-lately", "endless"]);
  expect(await idsOf("api-key")).toEqual(["hfk_1"]);
  expect(await idsOf("credential-use")).toEqual(["endless", "hfk_1"]);
});

test("the sweep deletes ended sessions and codes, and sessions of an earlier password", async () => {
  const minuteMs = 60_000;
  await put("user", "anna", { passwordHash: "x", operator: false, tokenGeneration: 1 });
  const binding = { userId: "anna", userSince: 0, tokenGeneration: 1 };
  const live = { ...binding, expiresAt: now + dayMs };
  const use = (id: string, at: number) => put("credential-use", id, { at, source: "::1" });
  await put("browser-session", "live", live);
  await use("live", now - minuteMs);
  await put("browser-session", "idle", live);
  await use("idle", now - dayMs);
  await put("browser-session", "over", { ...live, expiresAt: now - 11 * minuteMs });
  await put("browser-session", "of-an-earlier-password", { ...live, tokenGeneration: 0 });
  await use("of-an-earlier-password", now - minuteMs);
  await put("browser-session-code", "new", { ...binding, expiresAt: now + 1 });
  await put("browser-session-code", "old", { ...binding, expiresAt: now });
  await seen();
  await sweepCredentials({ ...collections, store, clock }, signal);
  expect(await idsOf("browser-session")).toEqual(["live"]);
  expect(await idsOf("browser-session-code")).toEqual(["new"]);
});

test("the sweep keeps a token that changed after the listing", async () => {
  await put("token", "changed", { expiresAt: 1 });
  await seen();
  const before = [...collections.tokens.values()];
  await put("token", "changed", { expiresAt: null });
  const asBefore = { ...collections.tokens, values: () => before.values() };
  await sweepCredentials({ ...collections, tokens: asBefore, store, clock }, signal);
  expect(await idsOf("token")).toContain("changed");
});

test("a last use is visible before it is written, written on close, and not for deleted credentials", async () => {
  const lastUse = createLastUse({
    store,
    uses: collections.credentialUses,
    exists: (id) => id !== "hfk_revoked",
    clock,
    log: silentLog,
  });
  expect(lastUse.of("hfk_2")).toBeUndefined();
  lastUse.record("hfk_2", "org", "192.0.2.1");
  now += 5_000;
  lastUse.record("hfk_2", "org", "192.0.2.2");
  lastUse.record("hfk_revoked", "org", "192.0.2.3");
  expect(lastUse.of("hfk_2")).toMatchObject({ at: now, source: "192.0.2.2" });
  expect(await idsOf("credential-use")).not.toContain("hfk_2");
  await lastUse.close();
  expect(await idsOf("credential-use")).toContain("hfk_2");
  expect(await idsOf("credential-use")).not.toContain("hfk_revoked");
  await seen();
  expect(collections.credentialUses.get("hfk_2")?.object.spec).toEqual({ at: now, source: "192.0.2.2" });
});
