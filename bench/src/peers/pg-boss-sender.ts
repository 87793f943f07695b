import { createHmac } from "node:crypto";
import { PgBoss } from "pg-boss";
import { type BenchDelivery, bodyOf } from "../support/bench-delivery.ts";
import { answerQueries } from "../support/peer-queries.ts";

// A typical alternative: jobs in PostgreSQL by pg-boss, fetched 64 at a time, sent concurrently by Node's fetch, and
// each completed after its response, so that a crash repeats the others.
const { historyUrl, url } = JSON.parse(process.argv[2] ?? "") as { historyUrl: string; url: string };
const queue = "deliveries";
const boss = new PgBoss({ connectionString: historyUrl, schedule: false, supervise: false });
boss.on("error", (error: unknown) => console.error(error));
await boss.start();
await boss.createQueue(queue);

async function send(delivery: BenchDelivery): Promise<void> {
  const body = bodyOf(delivery);
  const answer = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": delivery.id,
      "x-platform-signature": `sha256=${createHmac("sha256", delivery.secret).update(body).digest("hex")}`,
    },
    body,
    signal: AbortSignal.timeout(10_000),
  });
  await answer.arrayBuffer();
  if (!answer.ok) throw new Error(`the sink answered ${answer.status}`);
}

answerQueries({
  async fill({ deliveries }: { deliveries: BenchDelivery[] }) {
    for (let from = 0; from < deliveries.length; from += 1_000)
      await boss.insert(
        queue,
        deliveries.slice(from, from + 1_000).map((data) => ({ data })),
      );
  },
  /** Runs until the queue is empty. */
  async go() {
    for (;;) {
      const jobs = await boss.fetch<BenchDelivery>(queue, { batchSize: 64 });
      if (jobs.length === 0) break;
      await Promise.all(
        jobs.map(async ({ id, data }) => {
          await send(data);
          await boss.complete(queue, id);
        }),
      );
    }
  },
});
process.send?.({});
