import { expect, it } from "vitest";
import { createNodeClient } from "@holdfast/sdk/node/index.ts";
import { createQueue, Discard, type Queryable } from "@holdfast/sdk/queue/index.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { QueuesUnderTest } from "./queues-under-test.ts";

/** Values that handlers throw, with the stored text of each. */
const thrown: readonly { readonly error: unknown; readonly stored: string }[] = [
  { error: new Error("no"), stored: "Error: no" },
  { error: "x".repeat(5_000), stored: "x".repeat(4_096) },
  { error: `${"x".repeat(4_092)}🙂`, stored: `${"x".repeat(4_092)}🙂` },
  { error: `${"x".repeat(4_095)}🙂`, stored: "x".repeat(4_095) },
  { error: "a\0b", stored: "ab" },
  { error: "half \ud83d", stored: "half \ufffd" },
  { error: Object.create(null), stored: "an error without a text" },
  { error: new Discard("never \ud83d"), stored: "Discard: never \ufffd" },
];

const backoffs: Readonly<Record<string, ((attemptCount: number) => number) | undefined>> = {
  "the default": undefined,
  "a fraction": () => 0.3,
  "a number below zero": () => -1,
  infinity: () => Number.POSITIVE_INFINITY,
  "no number": () => Number.NaN,
  "an error": () => {
    throw new Error("planted");
  },
};

/** Cases that every value that a worker computes is stored in the queue, over SQL and over HTTP. */
export function workerValueCases(fixture: QueuesUnderTest): void {
  it.each(["sql", "http"] as const)("get each value that a worker of the SDK computes over %s", async (name) => {
    const queueName = `values-${name}`;
    // With one attempt no message is claimed again while the worker stops.
    await fixture.create(queueName, { max_attempts: 1 });
    const session = await fixture.connect();
    let last: Promise<unknown> = Promise.resolve();
    const pool: Queryable = {
      // One statement at a time, as a pool of one session.
      query(text, values) {
        const result = last.then(() => session.query(text, values));
        last = result.catch(() => undefined);
        return result;
      },
    };
    const client = createNodeClient({ dataDirectory: fixture.platform.directory });
    const service = fixture.orders.service.id;
    const queue =
      name === "sql"
        ? createQueue<{ n: number }>({ pool, queue: queueName })
        : createQueue<{ n: number }>({ client, service, queue: queueName });
    try {
      for (const [label, backoff] of Object.entries(backoffs)) {
        const payloads = thrown.map((_, n) => ({ n }));
        await queue.enqueue(payloads, { delaySeconds: 0.01 });
        const worker = queue.work(
          ({ payload: { n } }) => {
            throw thrown[n]?.error;
          },
          { batch: 100, visibilitySeconds: 2.5, stopOn: [], ...(backoff && { backoff }) },
        );
        await waitUntil(`all are nacked with the back-off of ${label}`, () => worker.tally.nacked >= thrown.length);
        expect((await worker.stop()).lost, label).toBe(0);
        const { rows } = await session.query<{ last_error: string }>(
          `SELECT DISTINCT ON (payload->>'n') last_error FROM (
             SELECT payload, last_error FROM mdb_queue.messages WHERE queue_name = $1
             UNION ALL SELECT payload, last_error FROM mdb_queue.dead_messages WHERE queue_name = $1
           ) AS all_messages ORDER BY payload->>'n'`,
          [queueName],
        );
        const errors = rows.map(({ last_error: error }) => error);
        expect(errors, label).toEqual(thrown.map(({ stored }) => stored));
        await session.query("DELETE FROM mdb_queue.messages WHERE queue_name = $1", [queueName]);
        await session.query("DELETE FROM mdb_queue.dead_messages WHERE queue_name = $1", [queueName]);
      }
    } finally {
      await last;
      await session.end();
    }
  });
}
