import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import {
  type MeasuredPerformance,
  measurePerformance,
  runKcat,
  runPerformanceTools,
} from "@holdfast/testing/engines/kafka-programs.ts";
import { openKafkaTools } from "@holdfast/testing/engines/kafka-tools.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import {
  createServices,
  expectStatus,
  type RunningService,
  type Services,
} from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { startBareKafka } from "./peers/bare-kafka.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { memoryOf, printHost } from "./support/host.ts";

// Kafka's performance tools through the front, beside a bare broker with Kafka's own TLS, alternating; a snapshot
// beside a raw consumer; memory of an idle broker by plan (as root).
const { values } = parseArgs({
  options: {
    records: { type: "string", default: "200000" },
    pairs: { type: "string", default: "3" },
    plans: { type: "string", default: "tier-1,tier-2,tier-4" },
  },
});
const longMs = 900_000;
const [records, pairs] = [Number(values.records), Number(values.pairs)];
const topic = "measured";

interface BackupJson {
  readonly id: string;
  readonly status: string;
}

printHost();
const platform = await startPlatform();
const services = createServices(platform);
try {
  for (const plan of values.plans.split(",").slice(1)) {
    const idle = await running(services, plan);
    showMemory(platform, idle, plan);
    await services.delete(idle.service.id);
  }
  const [plan = "tier-1"] = values.plans.split(",");
  const bus = await running(services, plan);
  showMemory(platform, bus, plan);
  await measureFront(bus);
  await measureSnapshot(bus);
} finally {
  await platform.remove();
}

async function running({ create, settled, open }: Services, plan: string): Promise<RunningService> {
  const body = { database_type: "kafka", plan_name: plan, storage_size_gb: 5 };
  const { id } = await create(`bus-${plan}`, body);
  await settled(id, "Running", longMs);
  return open(id);
}

function engineOf({ processes }: Platform, { service }: RunningService): number {
  return processes().machines.find(({ id }) => id === service.nodes[0]?.id)?.engine ?? 0;
}

/** Maximum heap in MiB, by the broker's arguments. */
function heapOf(pid: number): number {
  return Number(/-Xmx(\d+)m/.exec(readFileSync(`/proc/${pid}/cmdline`, "latin1"))?.[1] ?? 0);
}

function showMemory(of: Platform, bus: RunningService, plan: string): void {
  const pid = engineOf(of, bus);
  const { rssMb } = memoryOf(pid);
  print(`idle broker of ${plan}, heap ${heapOf(pid)} MiB: RSS`, `${rssMb.toFixed(0)} MB`);
}

async function measureFront(bus: RunningService): Promise<void> {
  const tools = await openKafkaTools();
  const bare = await startBareKafka(tools, heapOf(engineOf(platform, bus)));
  const [holdfast, peer]: [MeasuredPerformance[], MeasuredPerformance[]] = [[], []];
  try {
    // The first round warms both JVMs up.
    for (let round = 0; round <= pairs; round += 1) {
      const name = `${topic}-${round}`;
      const own = await runPerformanceTools(platform, bus, name, records);
      const { servers, file, directory } = bare;
      const other = await measurePerformance((argv) => tools.run(argv, [directory]), {
        servers,
        file,
        topic: name,
        records,
      });
      for (const { produced, consumed } of [own, other])
        if (produced !== records || consumed < records)
          throw new Error(`${produced} and ${consumed} of ${records} records`);
      if (round === 0) continue;
      holdfast.push(own);
      peer.push(other);
    }
  } finally {
    await bare.remove();
  }
  for (const [what, of] of [
    ["produce", (each: MeasuredPerformance) => each.producedMbPerS],
    ["consume", (each: MeasuredPerformance) => each.consumedMbPerS],
  ] as const) {
    const [own, other] = [holdfast.map(of), peer.map(of)];
    const ratio = ratios(own, other);
    print(`${what} through the front`, `${median(own).toFixed(1)} MB/s`);
    print(`${what} by Kafka's own TLS`, `${median(other).toFixed(1)} MB/s`);
    print(`${what}, ratio`, `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 0.85x");
  }
}

/** All topics of the service, once by a backup and once by a consumer that discards them. */
async function measureSnapshot(bus: RunningService): Promise<void> {
  const path = `/managed-services/${bus.service.id}/backups`;
  const [snapshots, consumers]: [number[], number[]] = [[], []];
  for (let round = 0; round < pairs; round += 1) {
    const backupAt = performance.now();
    const { id } = expectStatus(await platform.rest.post<BackupJson>(path), 202).json;
    const found = await waitUntil(
      "the backup has ended",
      async () => {
        const { json } = expectStatus(await platform.rest.get<BackupJson>(`${path}/${id}`), 200);
        return ["completed", "failed"].includes(json.status) && json;
      },
      { withinMs: longMs, everyMs: 20 },
    );
    if (found.status !== "completed") throw new Error(`the backup ${found.status}`);
    snapshots.push(performance.now() - backupAt);
    const readAt = performance.now();
    for (let each = 0; each <= pairs; each += 1)
      await runKcat(platform, bus, ["-C", "-t", `${topic}-${each}`, "-o", "beginning", "-e", "-q", "-f", ""]);
    consumers.push(performance.now() - readAt);
  }
  const bytes = (pairs + 1) * records * 1_000;
  const mbPerS = (wallMs: number) => bytes / 1e3 / wallMs;
  const [own, other] = [snapshots.map(mbPerS), consumers.map(mbPerS)];
  const ratio = ratios(own, other);
  print("snapshot, POST to completed", `${median(own).toFixed(1)} MB/s`);
  print("kcat -C that discards the records", `${median(other).toFixed(1)} MB/s`);
  print("snapshot, ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 0.8x");
}
