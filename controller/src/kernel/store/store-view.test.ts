import { HoldfastError } from "@holdfast/common/errors.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { startTcpProxy, type TcpProxy } from "@holdfast/testing/network/tcp-proxy.ts";
import { partial } from "@holdfast/testing/partial.ts";
import { until, waitUntil } from "@holdfast/testing/wait-until.ts";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { createEtcdStore } from "./etcd-store.ts";
import { createMirror, type Mirror } from "./mirror.ts";
import { createStoreView, type StoreView } from "./store-view.ts";
import type { Store, WatchHandler } from "./store.ts";

const maxAgeMs = 5_000;
let etcd: TestEtcd;
let proxy: TcpProxy;
/** The store of another controller, which is not cut off. */
let other: Store;
let own: Store;
/** Time that the clock of the view is ahead. */
let skippedMs: number;
let hasSession: boolean;
let view: StoreView;
let mirrors: Mirror<string>[];

beforeEach(async () => {
  etcd = await startTestEtcd();
  proxy = await startTcpProxy(Number(new URL(etcd.url).port));
  other = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  own = createEtcdStore({ hosts: [`http://127.0.0.1:${proxy.port}`], log: silentLog });
  skippedMs = 0;
  hasSession = true;
  view = createStoreView({
    store: own,
    bootMs: () => performance.now() + skippedMs,
    maxAgeMs,
    hasSession: () => hasSession,
  });
  mirrors = ["/a/", "/b/"].map((prefix) =>
    createMirror(
      view.store,
      prefix,
      ({ value }) => value,
      () => undefined,
    ),
  );
  await until(() => mirrors.every(({ revision }) => revision > 0n));
});
afterEach(async () => {
  for (const mirror of mirrors) mirror.close();
  await own?.close();
  await other?.close();
  proxy?.close();
  await etcd?.stop();
});

const put = (key: string, value: string) => other.commit({ conditions: [], puts: [{ key, value }], deletes: [] });
const isUnavailable = { key: "STORE_UNAVAILABLE" };

test("nothing is read during a cut that lasts longer than the limit", async () => {
  await view.requireCurrent();
  proxy.cut();
  // A short cut ends no session.
  await view.requireCurrent();
  skippedMs += maxAgeMs;
  await expect(view.requireCurrent()).rejects.toMatchObject(isUnavailable);
});

test.each(["cut", "stall"] as const)("after a %s no read lacks a change of another controller", async (kind) => {
  proxy[kind]();
  skippedMs += maxAgeMs;
  await put("/a/missed", "1");
  await put("/b/missed", "2");
  if (kind === "cut") {
    await expect(view.requireCurrent()).rejects.toMatchObject(isUnavailable);
    proxy.heal();
  }
  // Connections that a network has forgotten remain silent, and new ones work.
  const values = await waitUntil("the view is current", async () => {
    await view.requireCurrent();
    return mirrors.map((mirror) => mirror.get("missed"));
  });
  expect(values).toEqual(["1", "2"]);
});

test("a report that was sent before the cut makes nothing current", async () => {
  const handlers: WatchHandler[] = [];
  let newest = 7n;
  let requests = 0;
  const store = partial<Store>({
    revision: async () => newest,
    watch(_: string, handler: WatchHandler) {
      handlers.push(handler);
      return {
        close: () => undefined,
        requestProgress() {
          requests += 1;
          handler.synced(newest);
        },
        listAgain: () => expect.unreachable(),
      };
    },
  });
  let now = 0;
  const viewed = createStoreView({ store, bootMs: () => now, maxAgeMs, hasSession: () => true });
  viewed.store.watch("/a/", { reset() {}, put() {}, delete() {}, synced() {} });
  handlers[0]?.synced(7n);
  now += maxAgeMs;
  await viewed.requireCurrent();
  expect(requests).toBe(0);
  now += 1;
  newest = 9n;
  handlers[0]?.synced(8n);
  await viewed.requireCurrent();
  expect(requests).toBe(1);
  await viewed.requireCurrent();
  expect(requests).toBe(1);
});

test("a watch that does not report is listed again", async () => {
  let listings = 0;
  const store = partial<Store>({
    revision: async () => 9n,
    watch: (_: string, handler: WatchHandler) => ({
      close: () => undefined,
      requestProgress: () => undefined,
      listAgain() {
        listings += 1;
        handler.synced(9n);
      },
    }),
  });
  let now = 0;
  const viewed = createStoreView({ store, bootMs: () => now, maxAgeMs, hasSession: () => true });
  for (const prefix of ["/a/", "/b/"]) viewed.store.watch(prefix, { reset() {}, put() {}, delete() {}, synced() {} });
  now += maxAgeMs + 1;
  await Promise.all([viewed.requireCurrent(), viewed.requireCurrent()]);
  expect(listings).toBe(2);
});

test("a watch that lists again lacks no change", async () => {
  const values = new Map<string, string>();
  let resets = 0;
  const watch = own.watch("/c/", {
    reset() {
      resets += 1;
      values.clear();
    },
    put: ({ key, value }) => values.set(key, value),
    delete: (key) => values.delete(key),
    synced() {},
  });
  await put("/c/1", "before");
  await until(() => values.has("/c/1"));
  watch.listAgain();
  await put("/c/2", "after");
  await until(() => resets === 1 && values.size === 2);
  watch.close();
});

/** A view of the own store that counts its reads, with one mirror. */
async function countedView(read = () => own.revision()) {
  let reads = 0;
  const store = partial<Store>({
    ...own,
    async revision() {
      reads += 1;
      return read();
    },
  });
  const viewed = createStoreView({ store, bootMs: () => 0, maxAgeMs, hasSession: () => hasSession });
  const mirror = createMirror(
    viewed.store,
    "/a/",
    ({ value }) => value,
    () => undefined,
  );
  onTestFinished(() => mirror.close());
  await until(() => mirror.revision > 0n);
  return { viewed, mirror, reads: () => reads };
}

test("the end of the session is a cut, although the watches report", async () => {
  const { viewed, mirror, reads } = await countedView();
  await viewed.requireCurrent();
  expect(reads()).toBe(0);
  viewed.endSession();
  await put("/a/ended", "1");
  await viewed.requireCurrent();
  expect(reads()).toBe(1);
  expect(mirror.get("ended")).toBe("1");
  expect(viewed.requireCurrent()).toBeUndefined();
});

test("without a session each call reads the store", async () => {
  const { viewed, mirror, reads } = await countedView();
  hasSession = false;
  for (const value of ["1", "2"]) {
    await put("/a/each", value);
    await viewed.requireCurrent();
    expect(mirror.get("each")).toBe(value);
  }
  expect(reads()).toBe(2);
});

test("a session that ends after the read makes the read worthless", async () => {
  const ends: (() => void)[] = [];
  const { viewed, reads } = await countedView(async () => {
    const revision = await own.revision();
    ends.pop()?.();
    return revision;
  });
  ends.push(viewed.endSession);
  viewed.endSession();
  await viewed.requireCurrent();
  expect(reads()).toBe(2);
});

test("a watch that begins later counts, and one that is closed does not", async () => {
  let now = 0;
  const handlers: WatchHandler[] = [];
  const store = partial<Store>({
    revision: async () => {
      throw new HoldfastError("STORE_UNAVAILABLE", "Down.");
    },
    watch(_: string, handler: WatchHandler) {
      handlers.push(handler);
      return { close: () => undefined, requestProgress: () => undefined, listAgain: () => undefined };
    },
  });
  const viewed = createStoreView({ store, bootMs: () => now, maxAgeMs, hasSession: () => true });
  expect(viewed.requireCurrent()).toBeUndefined();
  const watches = ["/a/", "/b/"].map((prefix) => {
    now += 1;
    return viewed.store.watch(prefix, { reset() {}, put() {}, delete() {}, synced() {} });
  });
  now = maxAgeMs + 1;
  handlers[0]?.synced(1n);
  expect(viewed.requireCurrent()).toBeUndefined();
  now += 2;
  await expect(viewed.requireCurrent()).rejects.toMatchObject(isUnavailable);
  watches[1]?.close();
  expect(viewed.requireCurrent()).toBeUndefined();
});

test("a process that was suspended reads the changes before it responds", async () => {
  await put("/a/during", "1");
  skippedMs += 60_000;
  await view.requireCurrent();
  expect(mirrors[0]?.get("during")).toBe("1");
});
