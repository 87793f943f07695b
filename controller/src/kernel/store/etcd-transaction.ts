import type { IRequestOp, ITxnRequest, ITxnResponse } from "etcd3";
import { outboxPrefix } from "./outbox-entry.ts";
import type { Committed, Transaction } from "./store.ts";

/**
 * The transaction as etcd takes it. `again`: an earlier attempt without an answer may have worked, so the request
 * reads, in the same step, the values that conflict with a condition.
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

/** The outcome in etcd's answer, with the store's `revision` at that moment. */
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
 * One value of ours proves it, since all were written together and each holds ids or times of its own; others of them,
 * such as entries of the outbox, may have gone on since.
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
 * A transaction that only removes leaves no proof of itself, as its entries of the outbox move on within moments. If
 * all keys that it removes are gone, its goal is reached, whichever writer removed them.
 */
function isRemoved({ puts, conditions, deletes }: Transaction, responses: ITxnResponse["responses"]): boolean {
  if (deletes.length === 0 || !puts.every(({ key }) => key.startsWith(outboxPrefix))) return false;
  const wasThere = conditions.some(({ key, modRevision }) => modRevision > 0n && deletes.includes(key));
  return wasThere && deletes.every((_, index) => responses[puts.length + index]?.response_range.kvs.length === 0);
}
