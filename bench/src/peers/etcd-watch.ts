import { silentLog } from "@holdfast/common/log.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { answerQueries } from "../support/peer-queries.ts";

// etcd's own time from a put to the watch's event, by the same client, in a process without other work.
const { etcdUrl } = JSON.parse(process.argv[2] ?? "") as { etcdUrl: string };
const store = createEtcdStore({ hosts: [etcdUrl], log: silentLog });
const value = JSON.stringify({ text: "x".repeat(1_000) });
const putAt = new Map<string, number>();
let delays: number[] = [];

const ready = new Promise<void>((resolve) => {
  store.watch("/bench-echo/", {
    reset: () => undefined,
    put({ key }) {
      const at = putAt.get(key);
      if (at !== undefined) delays.push(performance.now() - at);
      putAt.delete(key);
    },
    delete: () => undefined,
    synced: () => resolve(),
  });
});

answerQueries({
  /** Milliseconds from each put to its event. */
  async echo({ perSecond, seconds }: { perSecond: number; seconds: number }) {
    delays = [];
    const startedAt = performance.now();
    const pending: Promise<unknown>[] = [];
    for (let sent = 0; sent < perSecond * seconds; sent += 1) {
      const dueMs = startedAt + (sent * 1_000) / perSecond - performance.now();
      if (dueMs > 1) await new Promise((resolve) => setTimeout(resolve, dueMs));
      const key = `/bench-echo/${sent}`;
      putAt.set(key, performance.now());
      pending.push(store.commit({ conditions: [], puts: [{ key, value }], deletes: [] }));
    }
    await Promise.all(pending);
    while (putAt.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    return delays;
  },
});
await ready;
process.send?.({});
