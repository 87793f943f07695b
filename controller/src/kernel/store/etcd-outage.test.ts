import { setTimeout as delay } from "node:timers/promises";
import { type LogFields, silentLog } from "@holdfast/common/log.ts";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTcpProxy } from "@holdfast/testing/network/tcp-proxy.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore, awaitStore } from "./etcd-store.ts";
import { outboxKeyOf } from "./outbox-entry.ts";
import type { Store } from "./store.ts";

let etcd: TestEtcd;
let store: Store;

beforeEach(async () => {
  etcd = await startTestEtcd();
  store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
});
afterEach(async () => {
  await store?.close();
  await etcd?.stop();
});

function put(key: string, value: string) {
  return store.commit({ conditions: [], puts: [{ key, value }], deletes: [] });
}

/** Watches a prefix and records its keys. */
function follow(prefix: string, through = store) {
  const state = new Map<string, string>();
  const seen = { state, resets: 0 };
  through.watch(prefix, {
    reset() {
      seen.resets += 1;
      state.clear();
    },
    put: ({ key, value }) => state.set(key, value),
    delete: (key) => state.delete(key),
    synced() {},
  });
  return seen;
}

test("calls fail within the deadline during an outage of etcd, and work again afterwards", async () => {
  await put("/o/1", "before");
  let retries = 0;
  const log = { ...silentLog, debug: (message: string) => void (message === "watch not resumed" && (retries += 1)) };
  const watching = createEtcdStore({ hosts: [etcd.url], log });
  onTestFinished(() => watching.close());
  const seen = follow("/o/", watching);
  await until(() => seen.state.has("/o/1"));
  await etcd.kill();
  const startedAt = Date.now();
  await expect(store.get("/o/1")).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  await expect(put("/o/2", "lost")).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(Date.now() - startedAt).toBeLessThan(60_000);
  await until(() => retries > 2);
  await etcd.start();
  expect((await put("/o/3", "after")).committed).toBe(true);
  await until(() => seen.state.get("/o/3") === "after");
  expect(seen.resets).toBe(0);
});

test("a call that begins during a short restart of etcd succeeds", async () => {
  await put("/o/1", "before");
  for (;;) {
    await etcd.kill();
    const attempt = store.get("/o/1").catch((error: unknown) => error);
    const began = performance.now();
    await etcd.start();
    // On a busy machine a restart may take as long as the call time-out: try again.
    if (performance.now() - began > 1_000) continue;
    expect(await attempt).toMatchObject({ value: "before" });
    return;
  }
});

test("a start during an outage waits until etcd responds", async () => {
  await etcd.kill();
  const late = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const waiting = awaitStore(late, silentLog, new AbortController().signal);
  const gaveUp = new AbortController();
  const impatient = awaitStore(late, silentLog, gaveUp.signal);
  await expect(Promise.race([waiting, late.revision()])).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  gaveUp.abort(new Error("enough"));
  await expect(impatient).rejects.toThrow("enough");
  await etcd.start();
  await waiting;
  await late.close();
});

test("a watch that missed compacted changes lists everything again", async () => {
  const proxy = await startTcpProxy(etcd.port);
  const cutOff = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  await put("/k/1", "old");
  await put("/k/2", "goes");
  const seen = follow("/k/", cutOff);
  await until(() => seen.state.size === 2);
  proxy.cut();
  await store.commit({ conditions: [], puts: [{ key: "/k/1", value: "new" }], deletes: ["/k/2"] });
  await put("/elsewhere", "x");
  await etcd.compact(await store.revision());
  proxy.heal();
  await until(() => seen.state.get("/k/1") === "new" && !seen.state.has("/k/2"));
  expect(seen.resets).toBe(1);
  await cutOff.close();
  proxy.close();
});

test("a watch whose connection is silent resumes on another", async () => {
  const proxy = await startTcpProxy(etcd.port);
  const stalled = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  const seen = follow("/s/", stalled);
  await put("/s/1", "one");
  await until(() => seen.state.has("/s/1"));
  proxy.stall();
  await put("/s/2", "two");
  await until(() => seen.state.has("/s/2"));
  expect(seen.resets).toBe(0);
  await stalled.close();
  proxy.close();
});

test("a watch leaves an etcd member without a leader", async () => {
  const errors: unknown[] = [];
  const log = { ...silentLog, warn: (_message: string, fields?: LogFields) => errors.push(fields?.["error"]) };
  const watching = createEtcdStore({ hosts: [etcd.url], log });
  const seen = follow("/n/", watching);
  await put("/n/1", "one");
  await until(() => seen.state.has("/n/1"));
  // A second member that never starts: the first member has no majority any more.
  const body = JSON.stringify({ peerURLs: ["http://127.0.0.1:1"] });
  expect((await fetch(`${etcd.url}/v3/cluster/member/add`, { method: "POST", body })).status).toBe(200);
  await until(() => errors.some((error) => /no leader/.test(String(error))));
  await watching.close();
});

test("a commit whose response was lost succeeds, and does not conflict with itself", async () => {
  const proxy = await startTcpProxy(etcd.port);
  const deaf = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  await deaf.revision();
  proxy.loseResponses();
  const change = deaf.commit({
    conditions: [{ key: "/x/1", modRevision: 0n }],
    puts: [
      { key: "/x/1", value: "mine" },
      { key: "/x/outbox", value: "moved on since" },
    ],
    deletes: [],
  });
  await until(async () => (await store.get("/x/1")) !== undefined);
  await store.commit({ conditions: [], puts: [], deletes: ["/x/outbox"] });
  proxy.cut();
  proxy.heal();
  const revision = (await store.get("/x/1"))?.modRevision;
  expect(await change).toEqual({ committed: true, revision });
  await deaf.close();
  proxy.close();
});

test("a deletion whose response was lost succeeds, even after its outbox entry moved on", async () => {
  const proxy = await startTcpProxy(etcd.port);
  const deaf = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  for (const key of ["/x/1", "/x/2"]) await put(key, "there");
  const there = await deaf.get("/x/1");
  const entry = outboxKeyOf("entry");
  proxy.loseResponses();
  const removal = deaf.commit({
    conditions: [{ key: "/x/1", modRevision: there?.modRevision ?? 0n }],
    puts: [{ key: entry, value: "gone" }],
    deletes: ["/x/1"],
  });
  await until(async () => (await store.get(entry)) !== undefined);
  await store.commit({ conditions: [], puts: [], deletes: [entry] });
  proxy.cut();
  proxy.heal();
  expect((await removal).committed).toBe(true);
  // A key that still exists was not deleted by any writer.
  const stale = { conditions: [{ key: "/x/2", modRevision: 1n }], puts: [], deletes: ["/x/2"] };
  expect(await deaf.commit(stale)).toEqual({ committed: false });
  await deaf.close();
  proxy.close();
});

test("an etcd without space is reported as STORE_UNAVAILABLE", async () => {
  const small = await startTestEtcd(["--quota-backend-bytes=1000000"]);
  const full = createEtcdStore({ hosts: [small.url], log: silentLog });
  const fill = async () => {
    for (let i = 0; i < 200; i += 1) {
      const puts = [{ key: `/fill/${i}`, value: "x".repeat(100_000) }];
      await full.commit({ conditions: [], puts, deletes: [] });
    }
  };
  await expect(fill()).rejects.toMatchObject({ key: "STORE_UNAVAILABLE" });
  expect(await full.get("/fill/0")).toBeDefined();
  await full.close();
  await small.stop();
});

test("a watch of an etcd that lost its data starts over", async () => {
  for (let i = 0; i < 10; i += 1) await put(`/d/${i}`, "x");
  const seen = follow("/d/");
  await until(() => seen.state.size === 10);
  await etcd.kill();
  await etcd.start({ empty: true });
  await put("/d/new", "y");
  await until(() => seen.state.size === 1 && seen.state.has("/d/new"));
  expect(seen.resets).toBeGreaterThan(0);
});

test("a lease ends here before etcd releases its keys", async () => {
  const lease = await store.lease(2);
  await store.commit({ conditions: [], puts: [{ key: "/l/1", value: "mine", lease }], deletes: [] });
  etcd.signal("SIGSTOP");
  // Time: the end of the lease in etcd, which is stopped; a busy machine makes the timers of both ends late.
  const released = delay(2_050, "released");
  expect(await Promise.race([lease.lost.then(() => "lost"), released])).toBe("lost");
  expect(lease.live).toBe(false);
  etcd.signal("SIGCONT");
});
