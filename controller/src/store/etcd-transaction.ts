import assert from "node:assert";
import type { IRequestOp, ITxnRequest, ITxnResponse } from "etcd3";
import type { EtcdClient } from "./etcd-client.ts";
import type { Committed, Transaction } from "./store.ts";

const maxKeys = 128;

/**
 * Commits once, however often it must be sent. An attempt without an answer may have worked; when a later one finds a
 * condition broken, it looks whether what stands there is what the earlier one wrote.
 */
export async function commitToEtcd(
  client: EtcdClient,
  transaction: Transaction,
  signal: AbortSignal | undefined,
): Promise<Committed> {
  const size = transaction.puts.length + transaction.deletes.length;
  assert(size > 0, "a transaction changes something");
  assert(Math.max(size, transaction.conditions.length) <= maxKeys, `a transaction has at most ${maxKeys} keys`);
  const request = requestOf(transaction);
  let unanswered = false;
  return client.call(async (options): Promise<Committed> => {
    const attempt = unanswered ? { ...request, failure: transaction.puts.map(({ key }) => rangeOf(key)) } : request;
    const before = unanswered;
    unanswered = true;
    const response = await client.raw.kv.txn(attempt, options);
    if (response.succeeded) return { committed: true, revision: BigInt(response.header.revision) };
    const ours = before ? revisionOfOurs(transaction, response) : undefined;
    return ours === undefined ? { committed: false } : { committed: true, revision: ours };
  }, signal);
}

function requestOf({ conditions, puts, deletes }: Transaction): ITxnRequest {
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
  };
}

function rangeOf(key: string): IRequestOp {
  return { request_range: { key: Buffer.from(key) } };
}

/**
 * One value of ours proves it, since all were written together and each holds ids or times of its own; others of them,
 * such as entries of the outbox, may have gone on since.
 */
function revisionOfOurs({ puts, conditions }: Transaction, response: ITxnResponse): bigint | undefined {
  const read = new Map(conditions.map(({ key, modRevision }) => [key, modRevision]));
  for (const [index, { key, value }] of puts.entries()) {
    const found = response.responses[index]?.response_range.kvs[0];
    if (found === undefined || found.value.toString() !== value) continue;
    const revision = BigInt(found.mod_revision);
    if (revision > (read.get(key) ?? 0n)) return revision;
  }
  return undefined;
}
