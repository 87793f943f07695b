import { monitorEventLoopDelay } from "node:perf_hooks";
import { parseArgs } from "node:util";
import { newConfiguration } from "@holdfast/controller/export/configuration/changed-configuration.ts";
import type { Destination } from "@holdfast/controller/export/destinations/destination.ts";
import { destinations } from "@holdfast/controller/export/destinations/destinations.ts";
import { prometheusRemoteWrite } from "@holdfast/controller/export/destinations/prometheus-remote-write.ts";
import type { MetricItem } from "@holdfast/controller/export/export-item.ts";
import { createExportDelivery, loopbackEgress } from "@holdfast/testing/servers/export-delivery.ts";
import { exportReaders } from "@holdfast/testing/servers/export-readers.ts";
import { startVictoriaMetrics } from "@holdfast/testing/servers/victoria-metrics.ts";
import { startVmAgent } from "./peers/vmagent.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";

// Samples from memory to a VictoriaMetrics that stored them, beside a vmagent that receives the same samples as ready
// requests and forwards them. CPU is the sender's: this process, or vmagent with its parsing.
const { values } = parseArgs({
  options: {
    series: { type: "string", default: "20000" },
    rounds: { type: "string", default: "9" },
    samples: { type: "string", default: "40" },
  },
});
const rounds = Number(values.rounds);
const samplesOfSeries = Number(values.samples);
const metrics = Array.from({ length: 20 }, (_, n) => `metric_${n}`);
const origins = Array.from({ length: Number(values.series) / metrics.length }, (_, n) => ({
  serviceId: `0198f2a4-6f0e-7c41-9a55-${String(n).padStart(12, "0")}`,
  serviceName: `service-${n}`,
  dbType: "postgresql",
  nodeId: `0198f2a4-5b1e-7d20-8c7f-${String(n).padStart(12, "0")}`,
}));
const context = { nowMs: 0, vendors: { apm: "", cloud: "", logSaas: "" } };
let clockMs = Math.floor(Date.now() / 1_000) * 1_000 - 86_400_000;

/** In the order of the history: by machine, with all values of each moment. */
function nextItems(): MetricItem[] {
  const from = clockMs;
  clockMs += samplesOfSeries * 15_000;
  return origins.flatMap((origin) =>
    Array.from({ length: samplesOfSeries }, (_, moment) =>
      metrics.map((metric, n) => ({
        origin,
        metric,
        value: Math.round(1e4 * Math.sin(n + moment)) / 100,
        timeMs: from + moment * 15_000,
      })),
    ).flat(),
  );
}

printHost();
const victoria = await startVictoriaMetrics();
if (typeof victoria === "string") throw new Error(victoria);
const url = `${victoria.url}/api/v1/write`;
const agent = await startVmAgent(url);
const egress = loopbackEgress();
const delivery = createExportDelivery(prometheusRemoteWrite, { url }, { egress });
const encoder = prometheusRemoteWrite.metrics;
if (encoder === undefined) throw new Error("remote write takes metrics");

async function rowsOf(): Promise<number> {
  const text = await (await fetch(`${victoriaUrl}/metrics`)).text();
  return Number(/^vm_rows_inserted_total\{type="promremotewrite"\} (\S+)$/m.exec(text)?.[1] ?? 0);
}
const victoriaUrl = victoria.url;

async function reached(rows: number): Promise<void> {
  for (
    const giveUpAt = Date.now() + 60_000;
    Date.now() < giveUpAt;
    await new Promise((resolve) => setTimeout(resolve, 20))
  )
    if ((await rowsOf()) >= rows) return;
  throw new Error(`only ${await rowsOf()} of ${rows} samples arrived`);
}

const perSecond = { holdfast: [] as number[], vmagent: [] as number[], floor: [] as number[] };
const bytes: number[] = [];
/** Totals of vmagent over all rounds, as it counts sent items late. */
let [firstBytes, lastBytes, sentItems] = [0, 0, 0];
try {
  for (let round = -1; round < rounds; round += 1) {
    const items = nextItems();
    const cpuOf = (before: NodeJS.CpuUsage) => {
      const { user, system } = process.cpuUsage(before);
      return (user + system) / 1_000;
    };
    const rows = await rowsOf();
    let began = process.cpuUsage();
    const { taken } = await delivery.samples(items);
    const holdfastMs = cpuOf(began);
    if (taken !== items.length) throw new Error("samples were refused");
    await reached(rows + items.length);

    const peerItems = nextItems();
    began = process.cpuUsage();
    const requests = await encoder.encode(peerItems, { url: agent.url }, context);
    const floorMs = cpuOf(began);
    if (round === 0) firstBytes = await agent.sentBytes();
    const beforeMs = cpuMsOf(agent.pid);
    for (const { url: to, headers, body } of requests) {
      const { status } = await fetch(to, { method: "POST", headers, body: Buffer.from(body ?? "") });
      if (status !== 204) throw new Error(`vmagent answered ${status}`);
    }
    await reached(rows + items.length + peerItems.length);
    const vmagentMs = cpuMsOf(agent.pid) - beforeMs;
    // The first round is a warm-up for both sides.
    if (round < 0) continue;
    perSecond.holdfast.push((1_000 * items.length) / holdfastMs);
    perSecond.floor.push((1_000 * peerItems.length) / floorMs);
    perSecond.vmagent.push((1_000 * peerItems.length) / vmagentMs);
    bytes.push(requests.reduce((sum, { body = "" }) => sum + Buffer.byteLength(body), 0) / peerItems.length);
    sentItems += peerItems.length;
  }
  await new Promise((resolve) => setTimeout(resolve, 2_000));
  lastBytes = await agent.sentBytes();
} finally {
  await egress.close();
  await agent.remove();
  await victoria.remove();
}

/** Longest block of the event loop by the encoding of one request, over full batches of samples. */
async function longestBlockMs(destination: Destination): Promise<number> {
  const fixture = destination.metrics;
  if (fixture === undefined) return Number.NaN;
  const checked = newConfiguration(destination, exportReaders[destination.type].configuration("http://127.0.0.1:1"));
  if (!checked.ok) throw new Error(`${destination.type} is not configured well`);
  const delay = monitorEventLoopDelay({ resolution: 1 });
  const items = nextItems().slice(0, 5_000);
  await fixture.encode(items, checked.configuration, context);
  delay.enable();
  for (let n = 0; n < 20; n += 1) {
    await fixture.encode(items, checked.configuration, context);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  delay.disable();
  return delay.percentile(90) / 1e6;
}

const range = (list: readonly number[], digits = 0) =>
  `${Math.min(...list).toFixed(digits)} - ${Math.max(...list).toFixed(digits)}`;
print("samples a CPU-second, Holdfast", range(perSecond.holdfast));
print("samples a CPU-second, vmagent", range(perSecond.vmagent));
print("samples a CPU-second, encoded and compressed alone", range(perSecond.floor));
const beside = ratios(perSecond.holdfast, perSecond.vmagent);
print("Holdfast / vmagent", `${times(beside.median)} (${times(beside.min)} - ${times(beside.max)})`, ">= 1.0x");
print("Holdfast / floor", times(ratios(perSecond.holdfast, perSecond.floor).median));
const peerBytes = (lastBytes - firstBytes) / sentItems;
print("bytes a sample, Holdfast", range(bytes, 2));
print("bytes a sample, vmagent", peerBytes.toFixed(2));
print("bytes, Holdfast / vmagent", times(median(bytes) / peerBytes), "<= 1.0x");
for (const destination of Object.values(destinations))
  if (destination.metrics !== undefined)
    print(
      `event loop held by 5,000 samples, ${destination.type}`,
      `${(await longestBlockMs(destination)).toFixed(1)} ms`,
      "<= 5 ms",
    );
