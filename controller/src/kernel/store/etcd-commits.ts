import assert from "node:assert";
import { HoldfastError } from "@holdfast/common/errors.ts";
import { batchLength, membersMax } from "./commit-batch.ts";
import { type EtcdClient, unavailable } from "./etcd-client.ts";
import { answerWithinMs, transactionKeysMax } from "./etcd-limits.ts";
import { committedOf, requestOf } from "./etcd-transaction.ts";
import type { Committed, Transaction } from "./store.ts";

/** This process's transactions on their way to etcd. */
export interface EtcdCommits {
  /** Commits once, however often it must be sent. */
  commit(transaction: Transaction, signal?: AbortSignal): Promise<Committed>;
}

interface Waiting {
  readonly transaction: Transaction;
  readonly askedMs: number;
  /** The caller has stopped waiting for its outcome. */
  left: boolean;
  resolve(outcome: Committed): void;
  reject(error: unknown): void;
}

/** One travels while the next is gathered: more at a time only make more and smaller calls. */
const maxUnderWay = 2;

/**
 * A transaction that comes while others are under way waits for one of them to end, and then travels with all waiting
 * ones, each with its own conditions, as one call and one entry of etcd's log. Without others it travels at once. A
 * call to etcd costs the controller several times as much as a transaction in it, and a thousand agents reconnect in a
 * moment.
 */
export function createEtcdCommits(client: EtcdClient, nowMs: () => number): EtcdCommits {
  let queue: Waiting[] = [];
  let underWay = 0;
  let gathering = false;

  function gather(): void {
    if (gathering || underWay >= maxUnderWay || queue.length === 0) return;
    gathering = true;
    // Transactions of one turn of the event loop travel together.
    setImmediate(() => {
      gathering = false;
      send();
    });
  }

  function send(): void {
    const before = nowMs() - answerWithinMs;
    for (const each of queue) if (each.askedMs < before) each.reject(unavailable(new Error("etcd is too slow")));
    queue = queue.filter(({ left }) => !left);
    while (underWay < maxUnderWay && queue.length > 0) {
      const next = queue.slice(0, membersMax).map(({ transaction }) => transaction);
      const batch = queue.splice(0, batchLength(next));
      underWay += 1;
      sendBatch(batch)
        .catch((error: unknown) => {
          for (const waiting of batch) waiting.reject(error);
        })
        .finally(() => {
          underWay -= 1;
          gather();
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
        // etcd refuses one of them, such as a put under a lease that has ended: sent alone, each gets its own answer.
        await Promise.all(batch.map((waiting) => sendAlone(waiting, attempts.count > 1)));
      }
    }
  }

  async function sendAlone(waiting: Waiting, mayBeDone: boolean): Promise<void> {
    try {
      const [outcome] = await outcomesOf([waiting], { count: mayBeDone ? 1 : 0 });
      assert(outcome, "a transaction has an outcome");
      waiting.resolve(outcome);
    } catch (error) {
      waiting.reject(error);
    }
  }

  function outcomesOf(batch: readonly Waiting[], attempts: { count: number }): Promise<Committed[]> {
    return client.call(async (options) => {
      const again = attempts.count > 0;
      attempts.count += 1;
      const requests = batch.map(({ transaction }) => requestOf(transaction, again));
      const [single] = requests;
      const request =
        requests.length === 1 && single !== undefined
          ? single
          : { success: requests.map((each) => ({ request_txn: each })) };
      const answer = await client.raw.kv.txn(request, options);
      return batch.map(({ transaction }, index) => {
        const own = batch.length === 1 ? answer : answer.responses[index]?.response_txn;
        assert(own, "etcd answers each transaction");
        return committedOf(transaction, own, answer.header.revision, again);
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
        const over = () => {
          waiting.left = true;
          signal?.removeEventListener("abort", onAbort);
        };
        const onAbort = () => waiting.reject(signal?.reason);
        const waiting: Waiting = {
          transaction,
          askedMs: nowMs(),
          left: false,
          resolve(outcome) {
            over();
            resolve(outcome);
          },
          reject(error) {
            over();
            reject(error as Error);
          },
        };
        signal?.addEventListener("abort", onAbort, { once: true });
        queue.push(waiting);
        gather();
      });
    },
  };
}
