import type { IRequestOp, ITxnRequest, ITxnResponse, IKeyValue } from "etcd3";
import { outboxPrefix } from "./outbox-entry.ts";
import type { Committed, Transaction, StoredValue } from "./store.ts";

/**
 * The transaction as an etcd request. `isRetry`: an earlier attempt without a response may have been committed, so the
 * request also reads the current values if a condition fails.
 */
export function requestOf({ conditions, puts, deletes }: Transaction, isRetry: boolean): ITxnRequest {
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
    ...(isRetry && { failure: [...puts.map(({ key }) => key), ...deletes].map(rangeOf) }),
  };
}

/** The outcome according to etcd's response; `revision` is the store's revision in that response. */
export function committedOf(
  transaction: Transaction,
  { succeeded, responses }: Pick<ITxnResponse, "succeeded" | "responses">,
  revision: string,
  isRetry: boolean,
): Committed {
  if (succeeded) return { committed: true, revision: BigInt(revision) };
  if (!isRetry) return { committed: false };
  const earlierRevision = revisionOfEarlierAttempt(transaction, responses);
  if (earlierRevision !== undefined) return { committed: true, revision: earlierRevision };
  return isRemoved(transaction, responses) ? { committed: true, revision: BigInt(revision) } : { committed: false };
}

function rangeOf(key: string): IRequestOp {
  return { request_range: { key: Buffer.from(key) } };
}

/**
 * The revision of an earlier attempt of this transaction; undefined unless it was committed. One matching value proves
 * that: all values are written together and contain unique ids or times. Other values, such as outbox entries, may have
 * been removed since.
 */
function revisionOfEarlierAttempt(
  { puts, conditions }: Transaction,
  responses: ITxnResponse["responses"],
): bigint | undefined {
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
 * its outbox entries are removed soon after. If all its keys are absent, its goal is reached, even if another writer
 * deleted them.
 */
function isRemoved({ puts, conditions, deletes }: Transaction, responses: ITxnResponse["responses"]): boolean {
  if (deletes.length === 0 || !puts.every(({ key }) => key.startsWith(outboxPrefix))) return false;
  const existed = conditions.some(({ key, modRevision }) => modRevision > 0n && deletes.includes(key));
  return existed && deletes.every((_, index) => responses[puts.length + index]?.response_range.kvs.length === 0);
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
