import type { IRequestOp, ITxnRequest, ITxnResponse, IKeyValue } from "etcd3";
import { outboxPrefix } from "./outbox-entry.ts";
import type { Committed, Transaction, StoredValue } from "./store.ts";

/**
 * The transaction as an etcd request. With `again`, an earlier attempt without a response may have been committed, so
 * the request also reads the current values in case a condition fails.
 */
export function requestOf({ conditions, puts, deletes }: Transaction, again: boolean): ITxnRequest {
  return {
    compare: conditions.map(({ key, modRevision }) => ({
      key: Buffer.from(key),
      target: "Mod" as const,
      result: "Equal" as const,
      mod_revision: modRevision.toString(),
    })),
    success: [
      ...puts.map(({ key, value, lease }) => ({
        request_put: { key: Buffer.from(key), value: Buffer.from(value), ...(lease && { lease: lease.id }) },
      })),
      ...deletes.map((key) => ({ request_delete_range: { key: Buffer.from(key) } })),
    ],
    ...(again && { failure: [...puts.map(({ key }) => key), ...deletes].map(rangeOf) }),
  };
}

/** The outcome in etcd's response, with the store's `revision` at that moment. */
export function committedOf(
  transaction: Transaction,
  { succeeded, responses }: Pick<ITxnResponse, "succeeded" | "responses">,
  revision: string,
  again: boolean,
): Committed {
  if (succeeded) return { committed: true, revision: BigInt(revision) };
  if (!again) return { committed: false };
  const ours = revisionOfOurs(transaction, responses);
  if (ours !== undefined) return { committed: true, revision: ours };
  return isRemoved(transaction, responses) ? { committed: true, revision: BigInt(revision) } : { committed: false };
}

function rangeOf(key: string): IRequestOp {
  return { request_range: { key: Buffer.from(key) } };
}

/**
 * The revision of this transaction if an earlier attempt was committed. One matching value proves it: all values were
 * written together and contain unique ids or times. Others, such as outbox entries, may have been removed since.
 */
function revisionOfOurs({ puts, conditions }: Transaction, responses: ITxnResponse["responses"]): bigint | undefined {
  const read = new Map(conditions.map(({ key, modRevision }) => [key, modRevision]));
  for (const [index, { key, value }] of puts.entries()) {
    const found = responses[index]?.response_range.kvs[0];
    if (found === undefined || found.value.toString() !== value) continue;
    const revision = BigInt(found.mod_revision);
    if (revision > (read.get(key) ?? 0n)) return revision;
  }
  return undefined;
}

/**
 * True if an earlier attempt of a delete was committed. A transaction that only deletes leaves no value to match, and
 * its outbox entries are removed within moments; when all its keys are absent its goal is reached, by any writer.
 */
function isRemoved({ puts, conditions, deletes }: Transaction, responses: ITxnResponse["responses"]): boolean {
  if (deletes.length === 0 || !puts.every(({ key }) => key.startsWith(outboxPrefix))) return false;
  const wasThere = conditions.some(({ key, modRevision }) => modRevision > 0n && deletes.includes(key));
  return wasThere && deletes.every((_, index) => responses[puts.length + index]?.response_range.kvs.length === 0);
}

/** The exclusive end of the range of all keys with the prefix: the prefix with its last byte incremented. */
export function rangeEndOf(prefix: string): Buffer {
  const end = Buffer.from(prefix);
  let last = end.length - 1;
  while (last >= 0 && end[last] === 0xff) last -= 1;
  if (last < 0) return Buffer.of(0);
  end[last] = (end[last] ?? 0) + 1;
  return end.subarray(0, last + 1);
}

/** The first possible key after this one. */
export function keyAfter(key: string): Buffer {
  return Buffer.from(`${key}\0`);
}

/** One key-value pair of an etcd response. */
export function storedOf(entry: IKeyValue): StoredValue {
  return {
    key: entry.key.toString(),
    value: entry.value.toString(),
    modRevision: BigInt(entry.mod_revision),
    createRevision: BigInt(entry.create_revision),
    leased: entry.lease !== "0",
  };
}
