import { setTimeout as sleep } from "node:timers/promises";
import { benchData } from "./bench-delivery.ts";
import { ms, percentile, print } from "./figures.ts";
import { untilTrue, type WebhookBench } from "./webhook-bench.ts";

const organizations = 20;

/** Commit to receiver at a steady rate, from etcd's acknowledgment of the change. */
export async function measureLatency(bench: WebhookBench, seconds: number, perSecond: number): Promise<void> {
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(["/"]));
  const sender = await bench.startSender();
  await sender.query({ query: "go" });
  await run(bench, ids, 0, perSecond * 3, perSecond);
  const latencies = await run(bench, ids, perSecond * 3, perSecond * (3 + seconds), perSecond);
  await sender.end();
  await bench.clear();
  print(`commit to receiver at ${perSecond}/s, p50`, ms(percentile(latencies, 0.5)));
  print("p95", ms(percentile(latencies, 0.95)));
  print("p99", ms(percentile(latencies, 0.99)), "<= 20 ms at 1,000/s");
}

/**
 * Emits the numbered events at the rate without waiting for deliveries; resolves with the duration of each, throws for
 * a missing one.
 */
export async function run(
  bench: WebhookBench,
  organizationIds: readonly string[],
  from: number,
  to: number,
  rate: number,
): Promise<number[]> {
  const committed: bigint[] = [];
  const commits: Promise<void>[] = [];
  const began = performance.now();
  for (let n = from; n < to; n += 1) {
    const dueMs = ((n - from) / rate) * 1_000;
    const waitMs = dueMs - (performance.now() - began);
    if (waitMs > 1) await sleep(waitMs);
    commits.push(
      bench.platform
        .emit(organizationIds[n % organizationIds.length] ?? "", "service.running", benchData(n))
        .then(() => void (committed[n - from] = process.hrtime.bigint())),
    );
  }
  await Promise.all(commits);
  const arrivals = () => bench.sink.query<(string | null)[]>({ query: "arrivals", from, to });
  let came: (string | null)[] = [];
  await untilTrue(async () => {
    came = await arrivals();
    return came.every((at) => at !== null);
  });
  return came.map((at, i) => Number(BigInt(at ?? 0) - (committed[i] ?? 0n)) / 1e6);
}
