import type { Transaction } from "./store.ts";

/** Most transactions in one call: etcd takes 128 operations on one level and the remainder on the next. */
export const membersMax = 64;
const keysMax = 48;
const bytesMax = 256 << 10;

/**
 * How many of these transactions, from the first on, may travel as one: at least one. etcd compares all conditions of a
 * call before it writes anything, so no transaction may touch a key that another of them changes.
 */
export function batchLength(transactions: readonly Transaction[]): number {
  const read = new Set<string>();
  const changed = new Set<string>();
  let bytes = 0;
  let length = 0;
  for (const transaction of transactions) {
    const { conditions, puts, deletes } = transaction;
    const changes = [...puts.map(({ key }) => key), ...deletes];
    const meets =
      changes.some((key) => changed.has(key) || read.has(key)) || conditions.some(({ key }) => changed.has(key));
    bytes += sizeOf(transaction);
    const isLarge = changes.length > keysMax || conditions.length > keysMax || bytes > bytesMax;
    if (length > 0 && (meets || isLarge || length === membersMax)) break;
    length += 1;
    // A large one travels alone.
    if (isLarge) break;
    for (const key of changes) changed.add(key);
    for (const { key } of conditions) read.add(key);
  }
  return length;
}

function sizeOf({ puts }: Transaction): number {
  return puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}
