import type { EventEntry } from "@holdfast/controller/kernel/store/outbox-entry.ts";
import { newDeliveries } from "@holdfast/controller/notify/webhook/deliveries.ts";
import { newDelivery, planDeliveries } from "@holdfast/controller/notify/webhook/delivery-dispatcher.ts";
import { uuidv7 } from "uuidv7";
import { benchData } from "./bench-delivery.ts";
import { median, print, ratios, times } from "./figures.ts";
import { type PeerProcess, startPeer } from "./peer-process.ts";
import type { Usage } from "./peer-queries.ts";
import { untilTrue, type WebhookBench } from "./webhook-bench.ts";

const organizations = 8;
const endpointsEach = 8;
const secret = "5".repeat(64);

interface Arm {
  readonly perSecond: number[];
  /** CPU of the sending process for each delivery, which is more reliable than a rate under other load. */
  readonly cpuUs: number[];
}

/** Deliveries per second from a backlog, each recorded when it counts, side by side with the peers. */
export async function measureThroughput(bench: WebhookBench, count: number, pairs: number): Promise<void> {
  const arms = { holdfast: arm(), bare: arm(), boss: arm() };
  const peerDeliveries = Array.from({ length: count }, (_, n) => ({ id: uuidv7(), secret, data: benchData(n) }));
  for (let pair = 0; pair <= pairs; pair += 1) {
    const results = {
      bare: await bare(bench, peerDeliveries),
      holdfast: await deliverByHoldfast(bench, count),
      boss: await boss(bench, peerDeliveries.slice(0, Math.ceil(count / 4))),
    };
    // The first round is a warm-up.
    if (pair === 0) continue;
    for (const name of ["holdfast", "bare", "boss"] as const) {
      arms[name].perSecond.push(results[name].perSecond);
      arms[name].cpuUs.push(results[name].cpuUs);
    }
  }
  for (const name of ["holdfast", "bare", "boss"] as const) {
    const { perSecond, cpuUs } = arms[name];
    print(`durable deliveries: ${name}`, `${median(perSecond).toFixed(0)}/s, ${median(cpuUs).toFixed(0)} us CPU each`);
  }
  for (const [peer, bar] of [
    ["bare", ">= 0.35x"],
    ["boss", ">= 8x"],
  ] as const) {
    const rate = ratios(arms.holdfast.perSecond, arms[peer].perSecond);
    print(`to ${peer}, median (min - max)`, `${times(rate.median)} (${times(rate.min)} - ${times(rate.max)})`, bar);
    const cpu = ratios(arms[peer].cpuUs, arms.holdfast.cpuUs);
    print(`to ${peer} by CPU of the sender`, `${times(cpu.median)} (${times(cpu.min)} - ${times(cpu.max)})`);
  }
}

function arm(): Arm {
  return { perSecond: [], cpuUs: [] };
}

interface Measured {
  readonly perSecond: number;
  readonly cpuUs: number;
}

/** Runs the work; returns the sender's cost. */
async function measure(sender: PeerProcess, count: number, run: () => Promise<unknown>): Promise<Measured> {
  const cpuUs = async () => (await sender.query<Usage>({ query: "usage" })).cpuUs;
  const before = await cpuUs();
  const began = performance.now();
  await run();
  const seconds = (performance.now() - began) / 1_000;
  return { perSecond: count / seconds, cpuUs: ((await cpuUs()) - before) / count };
}

/** Fills the history while no sender runs, then starts one. */
async function deliverByHoldfast(bench: WebhookBench, count: number): Promise<Measured> {
  const { platform } = bench;
  const ids: string[] = [];
  for (let n = 0; n < organizations; n += 1)
    ids.push(await bench.organization(Array.from({ length: endpointsEach }, () => "/")));
  const webhooksOf = ({ organizationId }: { readonly organizationId: string }) =>
    [...platform.webhooks.values()]
      .filter(({ object }) => object.metadata.organizationId === organizationId)
      .map(({ object }) => object.metadata.id);
  const events = count / endpointsEach;
  for (let from = 0; from < events; from += 100) {
    const batch = Array.from({ length: Math.min(100, events - from) }, (_, i) =>
      eventOf(ids[(from + i) % ids.length] ?? "", from + i),
    );
    const planned = planDeliveries(batch, webhooksOf, { dueAt: Date.now(), newId: uuidv7 });
    await platform.history.insert(batch, [newDeliveries(planned.map(newDelivery))]);
  }
  await platform.history.database.query("analyze webhook_delivery");
  const sender = await bench.startSender();
  const result = await measure(sender, count, async () => {
    await sender.query({ query: "go" });
    await untilTrue(async () => (await bench.counts()).waiting === 0);
  });
  const { attempts } = await bench.counts();
  await sender.end();
  await bench.clear();
  if (attempts !== count) throw new Error(`${attempts} attempts for ${count} deliveries`);
  return result;
}

async function bare({ sinkUrl }: WebhookBench, deliveries: readonly object[]): Promise<Measured> {
  const sender = await startPeer("bare-sender", { url: sinkUrl });
  const result = await measure(sender, deliveries.length, () => sender.query({ query: "go", deliveries }));
  await sender.end();
  return result;
}

async function boss({ servers, sinkUrl }: WebhookBench, deliveries: readonly object[]): Promise<Measured> {
  const sender = await startPeer("pg-boss-sender", { historyUrl: servers.historyUrl, url: `${sinkUrl}/` });
  await sender.query({ query: "fill", deliveries });
  const result = await measure(sender, deliveries.length, () => sender.query({ query: "go" }));
  await sender.end();
  return result;
}

function eventOf(organizationId: string, n: number): EventEntry {
  return {
    entry: "event",
    id: uuidv7(),
    occurredAt: Date.now(),
    type: "service.running",
    organizationId,
    objectKind: "managed-service",
    objectId: "s",
    data: benchData(n),
  };
}
