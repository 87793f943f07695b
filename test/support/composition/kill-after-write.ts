import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import { openEtcd } from "../platform/etcd-dump.ts";

/** Kills after writes of compositions; see `killAfterWrites`. */
export interface WriteKills {
  /** How many writes were followed by a kill. */
  readonly count: number;
  stop(): Promise<void>;
}

/**
 * Calls `kill` with each write of a composition that etcd tells of, at once: whatever the writer meant to do next, and the answer to
 * what it did, is lost. Writes that come while a kill is under way are not followed by another one.
 */
export async function killAfterWrites(
  directory: string,
  kill: (write: number) => Promise<void> | void,
): Promise<WriteKills> {
  const etcd = openEtcd(directory);
  const watcher = await etcd.raw
    .watch()
    .prefix(prefixOf({ name: "composition" }))
    .create();
  let count = 0;
  let isKilling = false;
  let last: Promise<void> = Promise.resolve();
  const onWrite = () => {
    if (isKilling) return;
    isKilling = true;
    count += 1;
    last = Promise.resolve(kill(count)).finally(() => {
      isKilling = false;
    });
  };
  watcher.on("put", onWrite).on("delete", onWrite);
  return {
    get count() {
      return count;
    },
    async stop() {
      await watcher.cancel();
      await last;
      etcd.raw.close();
    },
  };
}
