import type { IKeyValue } from "etcd3";
import type { StoredValue } from "./store.ts";

/** The end of the range that holds every key with the prefix: the prefix with its last byte raised. */
export function endOf(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  let last = end.length - 1;
  while (last >= 0 && end[last] === 0xff) last -= 1;
  if (last < 0) return Buffer.of(0);
  end[last] = (end[last] ?? 0) + 1;
  return end.subarray(0, last + 1);
}

/** The first key behind another. */
export function behind(key: string): Buffer {
  return Buffer.from(`${key}\0`);
}

/** What etcd answered of one key. */
export function storedOf(entry: IKeyValue): StoredValue {
  return {
    key: entry.key.toString(),
    value: entry.value.toString(),
    modRevision: BigInt(entry.mod_revision),
    createRevision: BigInt(entry.create_revision),
    leased: entry.lease !== "0",
  };
}
