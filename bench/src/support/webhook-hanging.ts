import { median, ms, percentile, print, ratios, times } from "./figures.ts";
import type { WebhookBench } from "./webhook-bench.ts";
import { run } from "./webhook-latency.ts";

const organizations = 10;
const warmUpSeconds = 2;
/** Endpoints of each organization, and the event rate at which all of them together get 1,000 deliveries per second. */
const cases = [
  { name: "one endpoint in five hangs", endpoints: 5, hanging: 1, eventsPerSecond: 200 },
  { name: "19 of an organization's 20 endpoints hang", endpoints: 20, hanging: 19, eventsPerSecond: 50 },
] as const;
type Case = (typeof cases)[number];

/** Healthy endpoints beside hanging ones of their organization, alternating with healthy ones only. */
export async function measureHanging(bench: WebhookBench, seconds: number, pairs: number): Promise<void> {
  for (const each of cases) {
    const p99 = { well: [] as number[], beside: [] as number[] };
    let inFlight = 0;
    for (let pair = 0; pair < pairs; pair += 1) {
      // The order alternates, as the databases change over time.
      const order = pair % 2 === 0 ? (["well", "beside"] as const) : (["beside", "well"] as const);
      for (const name of order) {
        const measured = await arm(bench, each, name === "beside" ? each.hanging : 0, seconds);
        p99[name].push(measured.p99);
        inFlight = Math.max(inFlight, measured.hangingMost);
      }
    }
    const ratio = ratios(p99.beside, p99.well);
    print(`healthy endpoints, p99, all well (${each.name})`, ms(median(p99.well)));
    print("p99 beside those that hang", ms(median(p99.beside)));
    print("ratio, median (min - max)", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, "<= 1.2x");
    print("hanging attempts, max concurrent", String(inFlight));
  }
}

/** Each event goes to all endpoints of its organization; its first arrival counts. */
async function arm(
  bench: WebhookBench,
  { endpoints, eventsPerSecond: rate }: Case,
  hanging: number,
  seconds: number,
): Promise<{ p99: number; hangingMost: number }> {
  const paths = Array.from({ length: endpoints }, (_, n) => (n < endpoints - hanging ? "/" : "/hang"));
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1) ids.push(await bench.organization(paths));
  const sender = await bench.startSender();
  await sender.query({ query: "go" });
  const counted = warmUpSeconds * rate;
  await run(bench, ids, 0, counted, rate);
  const latencies = await run(bench, ids, counted, counted + seconds * rate, rate);
  const { hangingMost } = await bench.sink.query<{ hangingMost: number }>({ query: "counts" });
  await sender.end();
  await bench.clear();
  return { p99: percentile(latencies, 0.99), hangingMost };
}
