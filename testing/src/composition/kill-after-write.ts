import { prefixOf } from "@holdfast/controller/kernel/store/resource.ts";
import { openEtcd } from "../platform/etcd-dump.ts";

/** Writes of compositions, as an etcd watch reports them. */
export interface SeenWrites {
  /** Number of writes so far. */
  readonly count: number;
  stop(): Promise<void>;
}

/** Counts the writes, and calls `onWrite` with each. */
export async function watchWrites(directory: string, onWrite: () => void = () => undefined): Promise<SeenWrites> {
  const etcd = openEtcd(directory);
  const watcher = await etcd.raw
    .watch()
    .prefix(prefixOf({ name: "composition" }))
    .create();
  let count = 0;
  const seen = () => {
    count += 1;
    onWrite();
  };
  watcher.on("put", seen).on("delete", seen);
  return {
    get count() {
      return count;
    },
    async stop() {
      await watcher.cancel();
      etcd.raw.close();
    },
  };
}

/**
 * Calls `kill` immediately with each write of a composition that etcd reports, so that the response to this write and
 * the writer's next action are lost. Writes during a kill trigger no second kill.
 */
export async function killAfterWrites(
  directory: string,
  kill: (write: number) => Promise<void> | void,
): Promise<Pick<SeenWrites, "stop">> {
  let kills = 0;
  let isKilling = false;
  let last: Promise<void> = Promise.resolve();
  const writes = await watchWrites(directory, () => {
    if (isKilling) return;
    isKilling = true;
    kills += 1;
    last = Promise.resolve(kill(kills)).finally(() => {
      isKilling = false;
    });
  });
  return {
    async stop() {
      await writes.stop();
      await last;
    },
  };
}
