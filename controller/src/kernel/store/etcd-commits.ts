import assert from "node:assert";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { type EtcdClient, unavailable, callTimeoutMs, transactionKeysMax } from "./etcd-client.ts";
import { committedOf, requestOf } from "./etcd-transaction.ts";
import type { Committed, Transaction } from "./store.ts";

/** Sends this process's transactions to etcd, in batches. */
export interface EtcdCommits {
  /** Commits exactly once, even when the transaction is sent several times. */
  commit(transaction: Transaction, signal?: AbortSignal): Promise<Committed>;
}

interface Waiting {
  readonly transaction: Transaction;
  readonly requestedAtMs: number;
  /** True if the caller no longer waits for the outcome. */
  isAbandoned: boolean;
  resolve(outcome: Committed): void;
  reject(error: unknown): void;
}

/** Maximum number of concurrent calls: more would only make the batches smaller. */
const maxInFlight = 2;

/**
 * Batches transactions. While `maxInFlight` calls are in flight, new transactions wait; they are then sent together,
 * each with its own conditions, as one etcd call and one entry of etcd's log. Without calls in flight a transaction is
 * sent immediately. A call takes the controller several times as much CPU time as a transaction in it, and after a
 * restart a thousand agents reconnect at the same time.
 */
export function createEtcdCommits(client: EtcdClient, nowMs: () => number): EtcdCommits {
  let queue: Waiting[] = [];
  let inFlight = 0;
  let isScheduled = false;

  function scheduleSend(): void {
    if (isScheduled || inFlight >= maxInFlight || queue.length === 0) return;
    isScheduled = true;
    // Transactions of one turn of the event loop share a call.
    setImmediate(() => {
      isScheduled = false;
      send();
    });
  }

  function send(): void {
    const before = nowMs() - callTimeoutMs;
    for (const each of queue) if (each.requestedAtMs < before) each.reject(unavailable(new Error("etcd is too slow")));
    queue = queue.filter(({ isAbandoned }) => !isAbandoned);
    while (inFlight < maxInFlight && queue.length > 0) {
      const next = queue.slice(0, batchTransactionsMax).map(({ transaction }) => transaction);
      const batch = queue.splice(0, batchLength(next));
      inFlight += 1;
      sendBatch(batch)
        .catch((error: unknown) => {
          for (const waiting of batch) waiting.reject(error);
        })
        .finally(() => {
          inFlight -= 1;
          scheduleSend();
        });
    }
  }

  async function sendBatch(batch: readonly Waiting[]): Promise<void> {
    const attempts = { count: 0 };
    try {
      const outcomes = await outcomesOf(batch, attempts);
      for (const [index, waiting] of batch.entries()) {
        const outcome = outcomes[index];
        assert(outcome, "each transaction has an outcome");
        waiting.resolve(outcome);
      }
    } catch (error) {
      const [only] = batch;
      if (error instanceof HoldfastError || batch.length === 1) {
        for (const waiting of batch) waiting.reject(error);
      } else if (only !== undefined) {
        // etcd rejected the batch because of one transaction, such as a put under an expired lease: send each one
        // separately.
        await Promise.all(batch.map((waiting) => sendAlone(waiting, attempts.count > 1)));
      }
    }
  }

  async function sendAlone(waiting: Waiting, mayBeCommitted: boolean): Promise<void> {
    try {
      const [outcome] = await outcomesOf([waiting], { count: mayBeCommitted ? 1 : 0 });
      assert(outcome, "a transaction has an outcome");
      waiting.resolve(outcome);
    } catch (error) {
      waiting.reject(error);
    }
  }

  function outcomesOf(batch: readonly Waiting[], attempts: { count: number }): Promise<Committed[]> {
    return client.call(async (options) => {
      const isRetry = attempts.count > 0;
      attempts.count += 1;
      const requests = batch.map(({ transaction }) => requestOf(transaction, isRetry));
      const [single] = requests;
      const request =
        requests.length === 1 && single !== undefined
          ? single
          : { success: requests.map((each) => ({ request_txn: each })) };
      const response = await client.raw.kv.txn(request, options);
      return batch.map(({ transaction }, index) => {
        const result = batch.length === 1 ? response : response.responses[index]?.response_txn;
        assert(result, "etcd responds to each transaction");
        return committedOf(transaction, result, response.header.revision, isRetry);
      });
    });
  }

  return {
    commit(transaction, signal) {
      const size = transaction.puts.length + transaction.deletes.length;
      assert(size > 0, "a transaction changes something");
      const keys = Math.max(size, transaction.conditions.length);
      assert(keys <= transactionKeysMax, `a transaction has at most ${transactionKeysMax} keys`);
      return new Promise((resolve, reject) => {
        if (signal?.aborted) return reject(signal.reason as Error);
        const settle = () => {
          waiting.isAbandoned = true;
          signal?.removeEventListener("abort", onAbort);
        };
        const onAbort = () => waiting.reject(signal?.reason);
        const waiting: Waiting = {
          transaction,
          requestedAtMs: nowMs(),
          isAbandoned: false,
          resolve(outcome) {
            settle();
            resolve(outcome);
          },
          reject(error) {
            settle();
            reject(error as Error);
          },
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        queue.push(waiting);
        scheduleSend();
      });
    },
  };
}

/** Maximum number of transactions of one batch: etcd counts 128 operations per nesting level (`--max-txn-ops`). */
const batchTransactionsMax = 64;
const batchKeysMax = 48;
const batchBytesMax = 256 << 10;

/**
 * Number of transactions, from the first on, that can be committed in one etcd call: at least one. etcd compares all
 * conditions of a call before it writes, so no transaction may touch a key that another transaction of the batch
 * changes.
 */
export function batchLength(transactions: readonly Transaction[]): number {
  const read = new Set<string>();
  const changed = new Set<string>();
  let bytes = 0;
  let length = 0;
  for (const transaction of transactions) {
    const { conditions, puts, deletes } = transaction;
    const changes = [...puts.map(({ key }) => key), ...deletes];
    const conflicts =
      changes.some((key) => changed.has(key) || read.has(key)) || conditions.some(({ key }) => changed.has(key));
    bytes += sizeOf(transaction);
    const isLarge = changes.length > batchKeysMax || conditions.length > batchKeysMax || bytes > batchBytesMax;
    if (length > 0 && (conflicts || isLarge || length === batchTransactionsMax)) break;
    length += 1;
    // A large transaction is a separate batch.
    if (isLarge) break;
    for (const key of changes) changed.add(key);
    for (const { key } of conditions) read.add(key);
  }
  return length;
}

function sizeOf({ puts }: Transaction): number {
  return puts.reduce((sum, { key, value }) => sum + key.length + value.length, 0);
}
