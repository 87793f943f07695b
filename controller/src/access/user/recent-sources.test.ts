import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import type { Store } from "#kernel/store/store.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { type User, userKind } from "../credential/credential.ts";
import { createRecentSources, signInSourcesKind } from "./recent-sources.ts";

let etcd: TestEtcd;
let store: Store;
const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

test("sources survive a restart, and the store contains only hashes of them", async () => {
  const open = () => {
    const signInSources = createCollection(store, signInSourcesKind);
    const users = createCollection(store, userKind);
    const deps = { store, signInSources, users, sealer, clock: systemClock, log: silentLog };
    return { signInSources, users, known: createRecentSources(deps) };
  };
  await putUser("anna");
  const before = open();
  await Promise.all([before.signInSources.ready, before.users.ready]);
  before.known.record("anna", "192.0.2.1");
  before.known.record("nobody", "192.0.2.1");
  await until(() => before.signInSources.get("anna") !== undefined);
  const after = open();
  await after.signInSources.ready;
  expect(["192.0.2.1", "192.0.2.2"].map((source) => after.known.has("anna", source))).toEqual([true, false]);
  expect(after.known.has("bert", "192.0.2.1")).toBe(false);
  expect(after.signInSources.get("nobody")).toBeUndefined();
  expect(JSON.stringify(after.signInSources.get("anna")?.object)).not.toContain("192.0.2");
  for (const { signInSources, users } of [before, after]) for (const each of [signInSources, users]) each.close();
});

test("no source is recorded for a user who was deleted before the write", async () => {
  const signInSources = createCollection(store, signInSourcesKind);
  await putUser("bert");
  const users = createCollection(store, userKind);
  await Promise.all([signInSources.ready, users.ready]);
  const bert = users.get("bert");
  // This memory is behind.
  const known = createRecentSources({
    store,
    signInSources,
    users: { get: (id) => (id === "bert" ? bert : undefined) },
    sealer,
    clock: systemClock,
    log: silentLog,
  });
  await store.commit({ conditions: [], puts: [], deletes: [keyOf(userKind, "bert")] });
  known.record("bert", "192.0.2.1");
  await until(() => !known.has("bert", "192.0.2.1"));
  expect(await store.get(keyOf(signInSourcesKind, "bert"))).toBeUndefined();
  for (const each of [signInSources, users]) each.close();
});

function putUser(id: string) {
  const user: User = { metadata: newMetadata(id, 0), spec: { passwordHash: null, operator: false }, status: {} };
  const puts = [{ key: keyOf(userKind, id), value: JSON.stringify(user) }];
  return store.commit({ conditions: [], puts, deletes: [] });
}
