import assert from "node:assert";
import { setTimeout as delay } from "node:timers/promises";
import { inBackground } from "@holdfast/common/background.ts";
import { createBootClock } from "@holdfast/common/boot-clock.ts";
import { type Clock, systemClock } from "@holdfast/common/clock.ts";
import type { Log } from "@holdfast/common/log.ts";
import { GRPCOutOfRangeError } from "etcd3";
import { createEtcdClient, type EtcdOptions, pageKeysMax } from "./etcd-client.ts";
import { keyAfter, rangeEndOf, storedOf } from "./etcd-transaction.ts";
import { createEtcdCommits } from "./etcd-commits.ts";
import { grantEtcdLease } from "./etcd-lease.ts";
import { watchEtcd } from "./etcd-watch.ts";
import { RevisionCompacted, type Store } from "./store.ts";

export interface EtcdStoreOptions extends EtcdOptions {
  readonly log: Log;
  readonly clock?: Clock;
  /** Clock of leases: milliseconds, including suspend. */
  readonly bootMs?: () => number;
}

/** The store on etcd 3.4 or newer. It connects on first use and reconnects by itself after an outage. */
export function createEtcdStore(options: EtcdStoreOptions): Store {
  const { log, clock = systemClock, bootMs = createBootClock() } = options;
  const client = createEtcdClient(options);
  const { kv } = client.raw;
  const commits = createEtcdCommits(client, clock.monotonicMs);
  const closing = new Set<() => void>();

  const store: Store = {
    async get(key, signal) {
      const found = await client.call((call) => kv.range({ key: Buffer.from(key) }, call), signal);
      const entry = found.kvs[0];
      return entry && storedOf(entry);
    },
    async list(prefix, { after, limit, revision }, signal) {
      assert(limit >= 1 && limit <= pageKeysMax, `a page has 1 to ${pageKeysMax} keys`);
      const range = {
        key: after === undefined ? Buffer.from(prefix) : keyAfter(after),
        range_end: rangeEndOf(prefix),
        limit,
        ...(revision !== undefined && { revision: revision.toString() }),
      };
      try {
        const found = await client.call((call) => kv.range(range, call), signal);
        return {
          values: found.kvs.map(storedOf),
          revision: revision ?? BigInt(found.header.revision),
          more: found.more,
        };
      } catch (error) {
        if (error instanceof GRPCOutOfRangeError) throw new RevisionCompacted(`revision ${revision}`, { cause: error });
        throw error;
      }
    },
    commit: commits.commit,
    async revision(signal) {
      const key = Buffer.from("/");
      const found = await client.call((call) => kv.range({ key, count_only: true }, call), signal);
      return BigInt(found.header.revision);
    },
    watch(prefix, handler) {
      const watch = watchEtcd({ client, list: store.list, log, clock }, prefix, handler);
      closing.add(watch.close);
      return watch;
    },
    async lease(ttlS) {
      const lease = await grantEtcdLease({ client, log, bootMs }, ttlS);
      closing.add(lease.abandon);
      inBackground(
        log,
        "end of a lease",
        lease.lost.then(() => closing.delete(lease.abandon)),
      );
      return lease;
    },
    async close() {
      for (const close of closing) close();
      closing.clear();
      client.raw.close();
    },
  };
  return store;
}

const retryDelayMs = 500;

/** Resolves when the store responds, without a time-out. Logs a warning if it does not respond immediately. */
export async function awaitStore(store: Pick<Store, "revision">, log: Log, signal: AbortSignal): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      await store.revision(signal);
      if (attempt > 1) log.info("the store responds");
      return;
    } catch (error) {
      signal.throwIfAborted();
      if (attempt === 1) log.warn("waiting for the store", { error: String(error) });
      await delay(retryDelayMs, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}
