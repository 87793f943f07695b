import { createHmac } from "node:crypto";
import { Pool } from "undici";
import { answerQueries } from "../support/peer-queries.ts";
import { type BenchDelivery, bodyOf } from "../support/bench-delivery.ts";

// The minimum cost of signed deliveries in Node: JSON, HMAC and a POST over persistent connections, 64 in flight,
// without storage.
const { url } = JSON.parse(process.argv[2] ?? "") as { url: string };
const pool = new Pool(url, { connections: 64, pipelining: 1 });
const inFlight = 64;

async function send(delivery: BenchDelivery): Promise<void> {
  const body = bodyOf(delivery);
  const { statusCode, body: answer } = await pool.request({
    path: "/",
    method: "POST",
    headers: {
      "content-type": "application/json",
      "webhook-id": delivery.id,
      "x-platform-signature": `sha256=${createHmac("sha256", delivery.secret).update(body).digest("hex")}`,
    },
    body,
  });
  await answer.dump();
  if (statusCode !== 200) throw new Error(`the sink answered ${statusCode}`);
}

answerQueries({
  async go({ deliveries }: { deliveries: BenchDelivery[] }) {
    let next = 0;
    await Promise.all(
      Array.from({ length: inFlight }, async () => {
        for (let at = next++; at < deliveries.length; at = next++) await send(deliveries[at] as BenchDelivery);
      }),
    );
  },
});
process.send?.({});
