import { ms, percentile, print, times } from "./figures.ts";
import type { WebhookBench } from "./webhook-bench.ts";
import { run } from "./webhook-latency.ts";

const organizations = 10;
const eventsPerSecond = 200;

/** Healthy endpoints beside others of their organization: first all five are well, then one in five hangs for 10 s. */
export async function measureHanging(bench: WebhookBench, seconds: number): Promise<void> {
  const clean = await arm(bench, ["/", "/", "/", "/", "/"], seconds);
  const dirty = await arm(bench, ["/", "/", "/", "/", "/hang"], seconds);
  print("healthy endpoints, p99, all well", ms(clean));
  print("healthy endpoints, p99, 20% hang for 10 s", ms(dirty));
  print("ratio", times(dirty / clean), "<= 1.2x");
}

/** Each event goes to all five; its first arrival counts. */
async function arm(bench: WebhookBench, paths: readonly string[], seconds: number): Promise<number> {
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(paths));
  const sender = await bench.startSender();
  await sender.ask({ ask: "go" });
  await run(bench, ids, 0, eventsPerSecond * 2, eventsPerSecond);
  const latencies = await run(bench, ids, eventsPerSecond * 2, eventsPerSecond * (2 + seconds), eventsPerSecond);
  await sender.end();
  await bench.clear();
  return percentile(latencies, 0.99);
}
