import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { startBareOpensearch } from "./peers/bare-opensearch.ts";
import { openBulkTarget, type BulkTarget } from "./support/bulk-target.ts";
import { median, ms, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Bulk writes through the front of a managed OpenSearch beside a bare engine with its own TLS, alternating; POST to the
// first document beside a start of the bare engine (as root).
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "bulk,service" },
    documents: { type: "string", default: "50000" },
    pairs: { type: "string", default: "5" },
    rounds: { type: "string", default: "3" },
  },
});
const only = new Set(values.only.split(","));
const [documents, pairs, rounds] = [Number(values.documents), Number(values.pairs), Number(values.rounds)];
const longMs = 900_000;

printHost();
const platform = await startPlatform();
const services = createServices(platform);
try {
  if (only.has("bulk")) await measureBulk();
  if (only.has("service")) await measureService();
} finally {
  await platform.remove();
}

async function running(name: string): Promise<RunningService> {
  const { id } = await services.create(name, { database_type: "opensearch" });
  await services.settled(id, "Running", longMs);
  return services.open(id);
}

async function targetOf({ connection, password }: RunningService): Promise<BulkTarget> {
  const { host, port, ca_certificate: ca, user } = connection;
  return openBulkTarget({ host, address: await addressOf(platform, host), port, ca, user, password });
}

/** Maximum heap in MiB, by the engine's arguments. */
function heapOf({ service }: RunningService): number {
  const pid = platform.processes().machines.find(({ id }) => id === service.nodes[0]?.id)?.engine ?? 0;
  return Number(/-Xmx(\d+)m/.exec(readFileSync(`/proc/${pid}/cmdline`, "latin1"))?.[1] ?? 0);
}

async function measureBulk(): Promise<void> {
  const service = await running("bulk");
  const target = await targetOf(service);
  const bare = await startBareOpensearch(heapOf(service));
  const [holdfast, peer]: [number[], number[]] = [[], []];
  try {
    // The first round warms both JVMs up.
    for (let round = 0; round <= pairs; round += 1) {
      const own = await target.bulk(`bulk-${round}`, documents);
      const other = await bare.bulk(`bulk-${round}`, documents);
      if (round === 0) continue;
      holdfast.push(own);
      peer.push(other);
    }
  } finally {
    await bare.remove();
    await target.close();
  }
  await services.delete(service.service.id);
  const ratio = ratios(holdfast, peer);
  print("bulk through the front", `${median(holdfast).toFixed(1)} MB/s`);
  print("bulk by OpenSearch's own TLS", `${median(peer).toFixed(1)} MB/s`);
  print("bulk, ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 0.9x");
}

async function measureService(): Promise<void> {
  const [holdfast, peer]: [number[], number[]] = [[], []];
  // The first of each warms caches.
  for (let round = 0; round <= rounds; round += 1) {
    const startedAt = performance.now();
    const service = await running(`new-${round}`);
    const target = await targetOf(service);
    await target.put("first", "1", {});
    const wallMs = performance.now() - startedAt;
    await target.close();
    const heapMb = heapOf(service);
    await services.delete(service.service.id);
    const bare = await startBareOpensearch(heapMb);
    await bare.remove();
    if (round === 0) continue;
    holdfast.push(wallMs);
    peer.push(bare.wallMs);
  }
  const ratio = ratios(holdfast, peer);
  print("POST to first document over TLS by name, p50", ms(median(holdfast)));
  print("bare start to first document over TLS, p50", ms(median(peer)));
  print("new service, ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, "<= 1.15x");
}
