import type { StoredValue } from "../store/store.ts";

/** Entries of the outbox in etcd that the watch delivered, in the order of the changes that wrote them. */
export interface WaitingEntries {
  readonly size: number;
  add(value: StoredValue): void;
  remove(key: string): void;
  clear(): void;
  oldest(count: number): StoredValue[];
}

export function createWaitingEntries(): WaitingEntries {
  let entries = new Map<string, StoredValue>();
  let last = 0n;
  /**
   * False after a listing, which is in key order and not by revision; changes arrive in the order of their revisions.
   */
  let ordered = true;
  return {
    get size() {
      return entries.size;
    },
    add(value) {
      if (value.createRevision < last) ordered = false;
      last = value.createRevision;
      entries.set(value.key, value);
    },
    remove: (key) => {
      entries.delete(key);
    },
    clear() {
      entries.clear();
      last = 0n;
      ordered = true;
    },
    oldest(count) {
      if (!ordered) {
        entries = new Map([...entries].toSorted(([, a], [, b]) => compare(a, b)));
        ordered = true;
      }
      return entries.values().take(count).toArray();
    },
  };
}

/** Orders entries by revision; within one change ids ascend in the order of writing. */
function compare(a: StoredValue, b: StoredValue): number {
  if (a.createRevision !== b.createRevision) return a.createRevision < b.createRevision ? -1 : 1;
  return a.key < b.key ? -1 : 1;
}
