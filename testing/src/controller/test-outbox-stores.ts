import { silentLog } from "@holdfast/common/log.ts";
import { createHistory, type History } from "@holdfast/controller/kernel/history/history.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import type { Store } from "@holdfast/controller/kernel/store/store.ts";
import { startTestPostgresql, type TestPostgresql } from "../engines/postgresql.ts";
import { startTestEtcd } from "./etcd.ts";

/** The stores of an outbox: a new etcd, and a history in a new PostgreSQL. */
export interface TestOutboxStores {
  readonly store: Store;
  readonly history: History;
  /** The database of the history, which a test may stop. */
  readonly postgresql: TestPostgresql;
  close(): Promise<void>;
}

/** Resolves when the history is ready. */
export async function startTestOutboxStores(): Promise<TestOutboxStores> {
  const [etcd, postgresql] = await Promise.all([startTestEtcd(), startTestPostgresql()]);
  const store = createEtcdStore({ hosts: [etcd.url], log: silentLog });
  const history = createHistory({ url: postgresql.url, log: silentLog, now: Date.now });
  await history.ready;
  return {
    store,
    history,
    postgresql,
    async close() {
      await history.close();
      await store.close();
      await Promise.all([etcd.stop(), postgresql.stop()]);
    },
  };
}
