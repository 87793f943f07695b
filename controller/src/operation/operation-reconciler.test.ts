import { randomBytes } from "node:crypto";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { uuidv7 } from "uuidv7";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createSealer } from "#kernel/secrets/sealer.ts";
import { createCollection } from "#kernel/store/collection.ts";
import { createEtcdStore } from "#kernel/store/etcd-store.ts";
import { keyOf, newMetadata } from "#kernel/store/resource.ts";
import type { Store } from "#kernel/store/store.ts";
import { createUnitOfWork } from "#kernel/store/unit-of-work.ts";
import { startTestEtcd, type TestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { until } from "@holdfast/testing/wait-until.ts";
import { operationKind, type OperationObject } from "./operation.ts";
import { createOperationReconciler } from "./operation-reconciler.ts";
import { partial } from "@holdfast/testing/partial.ts";

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

test("the newest hundred ended operations of a service are retained, and all running ones", async () => {
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const operations = createCollection(store, operationKind);
  await operations.ready;
  const reconciler = createOperationReconciler({
    operations,
    exists: () => true,
    begin: () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock: systemClock, ids: uuidv7 }),
    clock: systemClock,
  });
  const put = async (serviceId: string, finishedAt: number | null): Promise<string> => {
    const id = uuidv7();
    const object = partial<OperationObject>({
      metadata: newMetadata(id, Date.now(), { organizationId: "o" }),
      spec: { subject: { kind: "managed-service", id: serviceId }, type: "restart" },
      status: { state: "completed", finishedAt },
    });
    const value = JSON.stringify(object);
    await store.commit({ conditions: [], puts: [{ key: keyOf(operationKind, id), value }], deletes: [] });
    return id;
  };
  const running = await put("busy", null);
  const ended: string[] = [];
  for (let n = 0; n < 170; n += 1) ended.push(await put("busy", Date.now()));
  const other = await put("calm", Date.now());
  await until(() => operations.size === 172);
  const newest = ended.at(-1) ?? "";
  await until(async () => {
    await reconciler.reconcile(newest, AbortSignal.timeout(60_000)).catch(() => undefined);
    return operations.size === 102;
  });
  expect([running, other, ...ended.slice(-100)].every((id) => operations.get(id) !== undefined)).toBe(true);
  expect(ended.slice(0, 70).some((id) => operations.get(id) !== undefined)).toBe(false);
  operations.close();
});
