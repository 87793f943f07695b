import type { IRequestOp, ITxnRequest, ITxnResponse } from "etcd3";
import type { Committed, Transaction } from "./store.ts";

/**
 * The transaction as etcd takes it. `again`: an attempt without an answer may have worked, so a broken condition has what
 * stands there read in the same step.
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
    ...(again && { failure: puts.map(({ key }) => rangeOf(key)) }),
  };
}

/** What etcd's answer says, `revision` being the store's at that moment. */
export function committedOf(
  transaction: Transaction,
  { succeeded, responses }: Pick<ITxnResponse, "succeeded" | "responses">,
  revision: string,
  again: boolean,
): Committed {
  if (succeeded) return { committed: true, revision: BigInt(revision) };
  const ours = again ? revisionOfOurs(transaction, responses) : undefined;
  return ours === undefined ? { committed: false } : { committed: true, revision: ours };
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
