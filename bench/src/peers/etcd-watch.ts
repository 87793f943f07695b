import { silentLog } from "@holdfast/common/log.ts";
import { createEtcdStore } from "@holdfast/controller/kernel/store/etcd-store.ts";
import { answerQuestions } from "../support/questions.ts";

// What etcd itself takes from a put to the watch's event, through the same client, in a process that does nothing else.
const { etcdUrl } = JSON.parse(process.argv[2] ?? "") as { etcdUrl: string };
const store = createEtcdStore({ hosts: [etcdUrl], log: silentLog });
const value = JSON.stringify({ text: "x".repeat(1_000) });
const askedAt = new Map<string, number>();
let delays: number[] = [];

const ready = new Promise<void>((resolve) => {
  store.watch("/bench-echo/", {
    reset: () => undefined,
    put({ key }) {
      const at = askedAt.get(key);
      if (at !== undefined) delays.push(performance.now() - at);
      askedAt.delete(key);
    },
    delete: () => undefined,
    synced: () => resolve(),
  });
});

answerQuestions({
  /** Milliseconds from each put to its event. */
  async echo({ perSecond, seconds }: { perSecond: number; seconds: number }) {
    delays = [];
    const begun = performance.now();
    const pending: Promise<unknown>[] = [];
    for (let sent = 0; sent < perSecond * seconds; sent += 1) {
      const dueMs = begun + (sent * 1_000) / perSecond - performance.now();
      if (dueMs > 1) await new Promise((resolve) => setTimeout(resolve, dueMs));
      const key = `/bench-echo/${sent}`;
      askedAt.set(key, performance.now());
      pending.push(store.commit({ conditions: [], puts: [{ key, value }], deletes: [] }));
    }
    await Promise.all(pending);
    while (askedAt.size > 0) await new Promise((resolve) => setTimeout(resolve, 5));
    return delays;
  },
});
await ready;
process.send?.({});
