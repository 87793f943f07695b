import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { root } from "../store/resource.ts";
import { createDrainRequests } from "./drain-requests.ts";

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await startTestEtcd();
});
afterAll(() => etcd?.stop());

test("a drain request applies to the requested process, not to the next one of its id", async () => {
  const store = createEtcdStore({ hosts: [`http://127.0.0.1:${etcd.port}`], log: silentLog });
  const requests = createDrainRequests(store);
  const { signal } = new AbortController();
  const left = async () => (await store.list(`${root}/drain/`, { limit: 10 }, signal)).values.length;
  const drained: number[] = [];
  const serve = (startedAt: number) => requests.serve({ id: "c-1", startedAt }, () => drained.push(startedAt));
  try {
    const first = serve(1);
    for (let count = 0; count < 2; count += 1) {
      await requests.request({ id: "c-1", startedAt: 1 }, signal);
      await waitUntil("the request is read", async () => (await left()) === 0);
    }
    first.close();
    await requests.request({ id: "c-1", startedAt: 1 }, signal);
    const second = serve(2);
    await waitUntil("the request to the earlier process is deleted", async () => (await left()) === 0);
    expect(drained).toEqual([1]);
    await requests.request({ id: "c-1", startedAt: 2 }, signal);
    await waitUntil("it drains", () => drained.length === 2);
    expect(drained).toEqual([1, 2]);
    second.close();
  } finally {
    await store.close();
  }
});
