import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { FleetService } from "@holdfast/proto/holdfast/admin/v1/admin_pb.ts";
import { startTestEtcd } from "@holdfast/testing/controller/etcd.ts";
import { openPostgresql } from "@holdfast/testing/api/clients.ts";
import { grpcAs } from "@holdfast/testing/platform/organizations.ts";
import { type Platform, startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type Services } from "@holdfast/testing/platform/services.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { type Made, makeBarePostgresql } from "./peers/bare-postgresql.ts";
import { makePatroni, preparePatroni } from "./peers/patroni.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { memoryOf, printHost } from "./support/host.ts";

// POST to the first SELECT 1 over TLS by name, against bare initdb and against Patroni, alternating and many
// concurrently.
const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    "at-once": { type: "string", default: "20" },
    spares: { type: "string", default: "2" },
    waiting: { type: "string", default: "2" },
    peers: { type: "string", default: "bare,patroni" },
  },
});
const rounds = Number(values.rounds);
const atOnce = Number(values["at-once"]);
const waiting = Number(values.waiting);

/** One service from POST to its first row. */
interface Provisioned {
  readonly id: string;
  readonly wallMs: number;
  /** The engine's own time: from its start to "ready to accept connections". */
  readonly engineMs: number;
}

printHost();
const patroni = values.peers.split(",").includes("patroni") ? await preparePatroni() : undefined;
const etcd = await startTestEtcd();
const platform = await startPlatform({
  environment: {
    HOLDFAST_SPARES: values.spares,
    HOLDFAST_WAITING_MACHINES: values.waiting,
    HOLDFAST_WAITING_MACHINES_MAX: String(waiting === 0 ? 0 : Math.max(waiting, atOnce)),
  },
});
const services = createServices(platform);
const fleet = grpcAs(platform, platform.operator);
try {
  await inTurn();
  await memory();
  if (atOnce > 0) {
    await together(waiting);
    // The warm pool adapts to the expected demand.
    if (waiting > 0) await together(atOnce);
  }
} finally {
  fleet.close();
  await platform.remove();
  await etcd.stop();
}

async function inTurn(): Promise<void> {
  const provisioned: Provisioned[] = [];
  const bare: number[] = [];
  const patronis: number[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    await untilWaiting(1);
    const measured = await provision(`turn-${round}`, 5);
    await services.delete(measured.id);
    const bareMs = await timed(makeBarePostgresql());
    const patroniMs = patroni === undefined ? undefined : await timed(makePatroni(patroni, etcd));
    // The first of each warms caches.
    if (round === 0) continue;
    provisioned.push(measured);
    bare.push(bareMs);
    if (patroniMs !== undefined) patronis.push(patroniMs);
  }
  const walls = provisioned.map(({ wallMs }) => wallMs);
  const shares = provisioned.map(({ wallMs, engineMs }) => wallMs - engineMs);
  const toBare = ratios(walls, bare);
  print(
    `POST to first SELECT over TLS, ${rounds} in turn, p50 / p95`,
    `${ms(median(walls))} / ${ms(percentile(walls, 0.95))}`,
  );
  print("bare initdb + start + query, p50 / p95", `${ms(median(bare))} / ${ms(percentile(bare, 0.95))}`);
  if (patronis.length > 0) {
    const figures = `${ms(median(patronis))} / ${ms(percentile(patronis, 0.95))}`;
    print("Patroni bootstrap to first write, p50 / p95", figures);
    print("to Patroni: median", times(ratios(walls, patronis).median), "<= 0.6x");
  }
  print(
    "to bare: median (min - max)",
    `${times(toBare.median)} (${times(toBare.min)} - ${times(toBare.max)})`,
    "<= 1.0x",
  );
  print(
    "share outside the engine, p50 / p95",
    `${ms(median(shares))} / ${ms(percentile(shares, 0.95))}`,
    "<= 150 ms p95",
  );
}

async function together(ready: number): Promise<void> {
  await untilWaiting(ready);
  const count = Array.from({ length: atOnce }, (_, index) => index);
  const bareStartedAt = performance.now();
  const bare = await Promise.all(count.map(() => makeBarePostgresql()));
  const bareMs = performance.now() - bareStartedAt;
  await Promise.all(bare.map((each) => each.remove()));
  const startedAt = performance.now();
  const all = await Promise.all(count.map((index) => provision(`together-${ready}-${index}`, 100)));
  const ownMs = performance.now() - startedAt;
  print(`${atOnce} concurrently, ${ready} machines waiting: all answered after`, ms(ownMs));
  print(`${atOnce} bare concurrently: all answered after`, ms(bareMs));
  print("concurrently, to bare", times(ownMs / bareMs), "<= 1.0x");
  await Promise.all(all.map(({ id }) => services.delete(id)));
}

/** Creates a service and reads a row over TLS with its revealed password; throws for any wrong result. */
async function provision(name: string, everyMs: number): Promise<Provisioned> {
  const startedAt = performance.now();
  const { id } = await services.create(name, { allowed_cidrs: ["127.0.0.0/8"] });
  await untilRunning(services, id, everyMs);
  const { connection, password } = await services.open(id);
  const client = await openPostgresql(platform, connection, { password });
  const { rows } = await client.query("SELECT 1 AS one");
  const wallMs = performance.now() - startedAt;
  await client.end();
  if (rows[0]?.one !== 1) throw new Error(`${name} did not answer`);
  const service = await services.get(id);
  return { id, wallMs, engineMs: engineMsOf(platform, service) };
}

async function untilRunning({ get }: Services, id: string, everyMs: number): Promise<void> {
  for (;;) {
    const { status, error } = await get(id);
    if (status === "Running") return;
    if (status === "Error") throw new Error(`the service is in Error: ${error?.message}`);
    await sleep(everyMs);
  }
}

/** Times in the logs of the keeper and of PostgreSQL. */
function engineMsOf({ directory }: Platform, service: ServiceJson): number {
  const machineDirectory = join(directory, "machines", service.nodes[0]?.id ?? "");
  const lines = readFileSync(join(machineDirectory, "keeper.log"), "utf8").trim().split("\n");
  const notes = lines.map((line) => JSON.parse(line) as { name: string; state?: string; startedAt?: number });
  const log = readFileSync(join(machineDirectory, "state", "log", "engine.log.1"), "utf8");
  const startedAt = notes.find(({ name, state }) => name === "engine" && state === "running")?.startedAt ?? 0;
  const ready = /^(\d+\.\d+) .*ready to accept connections/m.exec(log)?.[1];
  return Number(ready) * 1_000 - startedAt;
}

/** Memory of keeper and agent of an idle machine. */
async function memory(): Promise<void> {
  await untilWaiting(1);
  const { id } = await provision("idle", 20);
  await sleep(20_000);
  const { nodes } = await services.get(id);
  const machine = platform.processes().machines.find((each) => each.id === nodes[0]?.id);
  const processes = (["keeper", "agent"] as const).map((name) => ({ name, ...memoryOf(machine?.[name] ?? 0) }));
  for (const { name, rssMb, pssMb, privateMb } of processes) {
    const figures = [rssMb, pssMb, privateMb].map((mb) => mb.toFixed(0)).join(" / ");
    print(`idle ${name}: RSS / PSS / private, MB`, figures);
  }
  const pssMb = processes.reduce((total, each) => total + each.pssMb, 0);
  print("keeper + agent: PSS", `${pssMb.toFixed(0)} MB`, "<= 30 MB");
  await services.delete(id);
}

async function timed(making: Promise<Made>): Promise<number> {
  const { wallMs, remove } = await making;
  await remove();
  return wallMs;
}

/** Resolves when the warm pool has this many machines again. */
async function untilWaiting(count: number): Promise<void> {
  const ready = async () => {
    const { machines } = await fleet.of(FleetService).listMachines({ page: { limit: 200 } });
    return waiting === 0 || machines.filter(({ state }) => state === "waiting").length >= count;
  };
  await waitUntil(`${count} machines wait`, ready, { withinMs: 600_000, everyMs: 500 });
  await sleep(500);
}
