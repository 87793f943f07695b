import { createRest, type RestTarget } from "@holdfast/testing/api/rest.ts";
import { answerQueries } from "../support/peer-queries.ts";

// Sends the largest allowed requests, several at a time, and repeats each until it is accepted, until the time is over.
const { target, path } = JSON.parse(process.argv[2] ?? "") as {
  target: Pick<RestTarget, "baseUrl" | "ca" | "authorization">;
  path: string;
};
const rest = createRest(target);
const message = { payload: { text: "x".repeat(262_000) } };
const rawBody = Buffer.from(JSON.stringify({ messages: Array.from({ length: 100 }, () => message) }));

answerQueries({
  /** Returns the number of responses by status, and the numbers of requests with known and unknown acceptance. */
  async go({ atOnce, seconds }: { atOnce: number; seconds: number }) {
    const until = performance.now() + seconds * 1_000;
    const leftMs = () => Math.ceil(until - performance.now());
    const statuses = new Map<number, number>();
    let [started, taken] = [0, 0];
    async function sendOne(n: number): Promise<void> {
      const headers = { "content-type": "application/json", "idempotency-key": `flood-${n}` };
      while (leftMs() > 0) {
        const { status } = await rest
          .call("POST", path, { rawBody, headers, timeoutMs: Math.max(leftMs(), 1) })
          .catch(() => ({ status: 0 }));
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        if (status === 202) return void (taken += 1);
        // Delay of Retry-After.
        await new Promise((resolve) => setTimeout(resolve, Math.min(1_000, Math.max(leftMs(), 0))));
      }
    }
    const sender = async () => {
      while (leftMs() > 0) await sendOne(started++);
    };
    await Promise.all(Array.from({ length: atOnce }, sender));
    return { statuses: Object.fromEntries(statuses), started, taken };
  },
});
process.send?.({});
