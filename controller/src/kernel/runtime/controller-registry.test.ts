import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { root } from "../store/resource.ts";
import type { Store } from "../store/store.ts";
import { createControllerRegistry } from "./controller-registry.ts";

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

test("a format is stored only once every live controller reads it", async () => {
  const older = {
    key: `${root}/controller/older`,
    value: JSON.stringify({ id: "older", address: "", startedAt: 1, draining: false }),
  };
  const lease = await store.lease(60);
  await store.commit({ conditions: [], puts: [{ ...older, lease }], deletes: [] });
  const controllerRegistry = createControllerRegistry({
    store,
    id: "newer",
    leaseS: 60,
    clock: systemClock,
    log: silentLog,
  });
  try {
    await waitUntil("both are members", () => controllerRegistry.controllers().length === 2);
    expect(controllerRegistry.allRead("destined-secret")).toBe(false);
    await lease.revoke();
    await waitUntil("the older one is gone", () => controllerRegistry.controllers().length === 1);
    expect(controllerRegistry.allRead("destined-secret")).toBe(true);
  } finally {
    await controllerRegistry.leave();
  }
});
