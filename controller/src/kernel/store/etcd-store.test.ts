import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore } from "./etcd-store.ts";
import { RevisionCompacted, type Store, type StoredValue, type WatchHandler } from "./store.ts";

let etcd: TestEtcd;
let store: Store;

beforeAll(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterAll(async () => {
  await store?.close();
  await etcd?.stop();
});

const nothing = { conditions: [], puts: [], deletes: [] };

function put(key: string, value: string) {
  return store.commit({ ...nothing, puts: [{ key, value }] });
}

/** A handler that records the state that a watcher would have. */
function mirror() {
  const state = new Map<string, string>();
  const seen = { state, resets: 0, synced: 0n };
  const handler: WatchHandler = {
    reset() {
      seen.resets += 1;
      state.clear();
    },
    put: ({ key, value }: StoredValue) => state.set(key, value),
    delete: (key) => state.delete(key),
    synced(revision) {
      seen.synced = revision;
    },
  };
  return { seen, handler };
}

test("a value is read back with its revisions", async () => {
  expect(await store.get("/a/none")).toBeUndefined();
  const done = await put("/a/1", '{"x":"ä"}');
  expect(done.committed).toBe(true);
  const found = await store.get("/a/1");
  expect(found).toMatchObject({ key: "/a/1", value: '{"x":"ä"}', leased: false });
  expect(done.committed && done.revision).toBe(found?.modRevision);
  expect(await store.revision()).toBe(found?.modRevision);
});

test("a failed condition changes nothing", async () => {
  const absent = { conditions: [{ key: "/b/1", modRevision: 0n }], puts: [{ key: "/b/1", value: "1" }], deletes: [] };
  expect((await store.commit(absent)).committed).toBe(true);
  expect(await store.commit({ ...absent, deletes: ["/b/2"] })).toEqual({ committed: false });
  expect((await store.get("/b/1"))?.value).toBe("1");
});

test("a prefix is listed in pages, in key order, at one revision", async () => {
  for (let i = 0; i < 25; i += 1) await put(`/page/${String(i).padStart(2, "0")}`, "x");
  await put("/pagf", "not in the prefix");
  const first = await store.list("/page/", { limit: 10 });
  await put("/page/99", "later");
  const keys = first.values.map(({ key }) => key);
  let { more } = first;
  while (more) {
    const page = await store.list("/page/", { limit: 10, after: keys.at(-1) ?? "", revision: first.revision });
    keys.push(...page.values.map(({ key }) => key));
    more = page.more;
  }
  expect(keys).toHaveLength(25);
  expect(keys).toEqual(keys.toSorted());
});

test("a compacted revision cannot be listed", async () => {
  const old = await store.revision();
  await put("/c/1", "1");
  await put("/c/2", "1");
  await etcd.compact(await store.revision());
  await expect(store.list("/c/", { limit: 10, revision: old })).rejects.toThrow(RevisionCompacted);
});

test("a watch delivers the existing keys, then every change", async () => {
  await put("/w/1", "one");
  const { seen, handler } = mirror();
  const watch = store.watch("/w/", handler);
  await until(() => seen.synced > 0n);
  expect([...seen.state]).toEqual([["/w/1", "one"]]);
  await put("/w/2", "two");
  await store.commit({ ...nothing, deletes: ["/w/1"] });
  await until(() => !seen.state.has("/w/1"));
  expect([...seen.state]).toEqual([["/w/2", "two"]]);
  watch.close();
});

test("a watch reports its progress on request, without changes under its prefix", async () => {
  const { seen, handler } = mirror();
  const watch = store.watch("/quiet/", handler);
  await until(() => seen.synced > 0n);
  const done = await put("/loud", "x");
  const revision = done.committed ? done.revision : 0n;
  await until(() => {
    watch.requestProgress();
    return seen.synced >= revision;
  });
  watch.close();
});

test("of two concurrent writers of a key one commits", async () => {
  const { modRevision } = (await store.get("/a/1")) ?? { modRevision: 0n };
  const results = await Promise.all(
    Array.from({ length: 10 }, (_, i) =>
      store.commit({
        conditions: [{ key: "/a/1", modRevision }],
        puts: [{ key: "/a/1", value: `writer ${i}` }],
        deletes: [],
      }),
    ),
  );
  expect(results.filter(({ committed }) => committed)).toHaveLength(1);
});

test("concurrent commits each have their own conditions and outcome", async () => {
  const before = await store.revision();
  const fresh = (key: string, value: string) =>
    store.commit({ conditions: [{ key, modRevision: 0n }], puts: [{ key, value }], deletes: [] });
  const queries = Array.from({ length: 300 }, (_, i) => fresh(`/many/${i % 150}`, String(i)));
  const outcomes = await Promise.all(queries);
  expect(outcomes.map(({ committed }) => committed)).toEqual(queries.map((_, i) => i < 150));
  for (const i of [0, 70, 149]) {
    const found = await store.get(`/many/${i}`);
    expect(found?.value).toBe(String(i));
    expect(outcomes[i]).toEqual({ committed: true, revision: found?.modRevision });
  }
  // The commits were batched: etcd's revision is far lower than the number of commits.
  expect((await store.revision()) - before).toBeLessThan(50n);
});

test("a transaction that etcd rejects does not fail the others", async () => {
  const lease = await store.lease(2);
  await lease.revoke();
  const doomed = store.commit({ ...nothing, puts: [{ key: "/refused", value: "x", lease }] });
  const others = Array.from({ length: 20 }, (_, i) => put(`/beside/${i}`, "x"));
  await expect(doomed).rejects.toThrow(/lease/);
  expect((await Promise.all(others)).every(({ committed }) => committed)).toBe(true);
  expect((await store.get("/beside/19"))?.value).toBe("x");
});

test("a commit that is aborted before it is sent never happens", async () => {
  const enough = new AbortController();
  const queries = store.commit({ ...nothing, puts: [{ key: "/aborted", value: "x" }] }, enough.signal);
  enough.abort(new Error("enough"));
  await expect(queries).rejects.toThrow("enough");
  await put("/behind", "x");
  expect(await store.get("/aborted")).toBeUndefined();
});

test("a lease has ended right after a longer suspend, before any timer fires", async () => {
  let suspendedMs = 0;
  const bootMs = () => performance.now() + suspendedMs;
  const other = createEtcdStore({ hosts: [etcd.url], log: silentLog, bootMs });
  const lease = await other.lease(30);
  expect(lease.live).toBe(true);
  suspendedMs = 31_000;
  expect(lease.live).toBe(false);
  await lease.lost;
  await other.close();
});

test("keys of a lease remain while it is renewed, and are deleted when it is revoked", async () => {
  const lease = await store.lease(12);
  await store.commit({ ...nothing, puts: [{ key: "/l/1", value: "x", lease }] });
  let leastS = Number.POSITIVE_INFINITY;
  await until(async () => {
    const leftS = await etcd.leaseSecondsOf("/l/1");
    leastS = Math.min(leastS, leftS);
    return leftS > leastS;
  });
  expect(lease.live).toBe(true);
  expect((await store.get("/l/1"))?.leased).toBe(true);
  await lease.revoke();
  expect(lease.live).toBe(false);
  await lease.lost;
  expect(await store.get("/l/1")).toBeUndefined();
});

test("an aborted call rejects immediately with the reason", async () => {
  await expect(store.get("/a/1", AbortSignal.abort(new Error("enough")))).rejects.toThrow("enough");
});
