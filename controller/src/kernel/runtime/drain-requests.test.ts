import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTestEtcd, type TestEtcd } from "../../../../test/support/controller/etcd.ts";
import { waitUntil } from "../../../../test/support/wait-until.ts";
import { createEtcdStore } from "../store/etcd-store.ts";
import { root } from "../store/resource.ts";
import { createDrainRequests } from "./drain-requests.ts";

let etcd: TestEtcd;
beforeAll(async () => {
  etcd = await startTestEtcd();
});
afterAll(() => etcd?.stop());

test("a request is for the process that was asked, and not for the next one of its id", async () => {
  const store = createEtcdStore({ hosts: [`http://127.0.0.1:${etcd.port}`], log: silentLog });
  const requests = createDrainRequests(store);
  const { signal } = new AbortController();
  const left = async () => (await store.list(`${root}/drain/`, { limit: 10 }, signal)).values.length;
  const drained: number[] = [];
  const serve = (startedAt: number) => requests.serve({ id: "c-1", startedAt }, () => drained.push(startedAt));
  try {
    const first = serve(1);
    for (let asked = 0; asked < 2; asked += 1) {
      await requests.ask({ id: "c-1", startedAt: 1 }, signal);
      await waitUntil("it is read", async () => (await left()) === 0);
    }
    first.close();
    await requests.ask({ id: "c-1", startedAt: 1 }, signal);
    const second = serve(2);
    await waitUntil("what was for the one of before is gone", async () => (await left()) === 0);
    expect(drained).toEqual([1]);
    await requests.ask({ id: "c-1", startedAt: 2 }, signal);
    await waitUntil("it drains", () => drained.length === 2);
    expect(drained).toEqual([1, 2]);
    second.close();
  } finally {
    await store.close();
  }
});
