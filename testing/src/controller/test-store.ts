import { randomBytes } from "node:crypto";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { type Collections, createCollections } from "./test-collections.ts";
import { createSealer } from "@holdfast/controller/kernel/secrets/sealer.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import { createUnitOfWork, type UnitOfWork } from "@holdfast/controller/kernel/store/unit-of-work.ts";
import { uuidv7 } from "uuidv7";
import { startTestEtcd } from "./etcd.ts";

/** An empty store in a new etcd, with the controller's collections over it. */
export interface TestStore {
  readonly store: Store;
  readonly collections: Collections;
  begin(): UnitOfWork;
  close(): Promise<void>;
}

/** Resolves when the collections are ready. */
export async function startTestStore(clock: Clock = systemClock): Promise<TestStore> {
  const etcd = await startTestEtcd();
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const sealer = createSealer({ current: "v1", keys: new Map([["v1", randomBytes(32)]]) });
  const collections = createCollections(store);
  await collections.ready;
  return {
    store,
    collections,
    begin: () => createUnitOfWork(store, { outbox: { admit() {} }, sealer, clock, ids: uuidv7 }),
    async close() {
      collections.close();
      await store.close();
      await etcd.stop();
    },
  };
}
