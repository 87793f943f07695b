import { idOf } from "./resource.ts";
import type { Store, StoredValue, StoreWatch } from "./store.ts";

/** Values under a prefix, mirrored in memory by a watch. During a new listing the previous values remain visible. */
export interface Mirror<T> {
  get(id: string): T | undefined;
  has(id: string): boolean;
  values(): IterableIterator<T>;
  /** The etcd revision that is loaded; 0n before the first listing. */
  readonly revision: bigint;
  close(): void;
}

/** `onChange` is called after each batch of changes. An id is the last segment of its key. */
export function createMirror<T>(
  store: Store,
  prefix: string,
  read: (value: StoredValue) => T,
  onChange: () => void,
): Mirror<T> {
  let current = new Map<string, T>();
  let listing: Map<string, T> | undefined;
  let revision = 0n;
  const watch: StoreWatch = store.watch(prefix, {
    reset() {
      listing = new Map();
    },
    put: (value) => {
      (listing ?? current).set(idOf(value.key), read(value));
    },
    delete: (key) => {
      current.delete(idOf(key));
    },
    synced(to) {
      current = listing ?? current;
      listing = undefined;
      revision = to;
      onChange();
    },
  });
  return {
    get: (id) => current.get(id),
    has: (id) => current.has(id),
    values: () => current.values(),
    get revision() {
      return revision;
    },
    close: watch.close,
  };
}
