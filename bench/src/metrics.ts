import { readdirSync, readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { create } from "@bufbuild/protobuf";
import { systemClock } from "@holdfast/common/clock.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { createHistory } from "@holdfast/controller/kernel/history/history.ts";
import { createSampleCollector } from "@holdfast/controller/insight/metric/sample-collector.ts";
import { createSamples } from "@holdfast/controller/insight/metric/samples/samples.ts";
import { SampleSchema } from "@holdfast/proto/holdfast/agent/v1/session_pb.ts";
import { startTestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { uuidv7 } from "uuidv7";
import { ms, percentile, print } from "./support/figures.ts";
import { cpuMsOf, printHost } from "./support/host.ts";

// Samples of many machines through the collector into a real history, against a row for each value; roll-ups; a week's
// chart of five nodes. CPU is that of this process and of PostgreSQL together.
const { values } = parseArgs({
  options: {
    machines: { type: "string", default: "1000" },
    rounds: { type: "string", default: "40" },
    queries: { type: "string", default: "60" },
  },
});
const machines = Array.from({ length: Number(values.machines) }, () => uuidv7());
const rounds = Number(values.rounds);
/** Metrics of a machine with an engine: 7 of the machine, 7 of the engine. */
const slots = [1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];
const intervalMs = 15_000;
/** The insertion order of roll-ups: by hour of each machine. */
const aDay = `
  insert into sample_five_minutes
  select m, t, array_fill(4::smallint, '{15}'), array_fill(4 * random(), '{15}'), array_fill(random(), '{15}'),
    array_fill(random(), '{15}')
  from generate_series($2::timestamptz, $2::timestamptz + interval '23 hours', '1 hour') as h, unnest($1::uuid[]) as m,
    generate_series(h, h + interval '59 minutes', '5 minutes') as t`;

printHost();
const durable = [
  "fsync=on",
  "full_page_writes=on",
  "synchronous_commit=on",
  "shared_buffers=256MB",
  "max_wal_size=4GB",
];
const postgresql = await startTestPostgresql(durable);
const now = Date.now();
const history = createHistory({ url: postgresql.url, log: silentLog, now: () => now });
await history.ready;
const { database } = history;
const samples = createSamples(history.sql);
const collector = createSampleCollector({
  storedSamples: samples,
  clock: systemClock,
  random: Math.random,
  log: silentLog,
});
try {
  const beganAt = Math.floor(now / 3_600_000 - 3) * 3_600_000;
  await ingest(beganAt);
  await ingestRows(beganAt);
  await rollUp(beganAt);
  await chart();
} finally {
  await collector.close();
  await history.close();
  await postgresql.stop();
}

/** Each round is one moment of all machines, which all wait for their acknowledgment. */
async function ingest(beganAt: number): Promise<void> {
  const cpu = treeCpuMs();
  for (let round = 0; round < rounds; round += 1) {
    const timeMs = BigInt(beganAt + round * intervalMs);
    const taken = await Promise.all(
      machines.map((machine) => collector.take(machine, [create(SampleSchema, { timeMs, slots, values: valuesOf() })])),
    );
    if (!taken.every(({ stored }) => stored)) throw new Error("samples were not kept");
  }
  printRow("samples of the collector", treeCpuMs() - cpu, await bytesOf("sample"));
}

/** The peer: a row for each value, by the same kind of statement with the same durability. */
async function ingestRows(beganAt: number): Promise<void> {
  await database.query(
    "create table bare (machine_id uuid, metric smallint, time timestamptz, value float8, primary key (machine_id, metric, time))",
  );
  const cpu = treeCpuMs();
  for (let round = 0; round < rounds; round += 1) {
    const rows = machines.flatMap((machine) =>
      valuesOf().map((value, index) => [machine, slots[index], value] as const),
    );
    await database.query(
      `insert into bare select m, s, to_timestamp($4::float8 / 1000), v from unnest($1::uuid[], $2::smallint[], $3::float8[]) as t (m, s, v)`,
      [...[0, 1, 2].map((column) => rows.map((row) => row[column])), beganAt + round * intervalMs],
    );
  }
  printRow("the same, a row for each value", treeCpuMs() - cpu, await bytesOf("bare"));
}

async function rollUp(beganAt: number): Promise<void> {
  const cpu = treeCpuMs();
  const hours = await samples.rollUp(beganAt + 3 * 3_600_000);
  const [row] = await database.query<{ minutes: string }>("select count(*) as minutes from sample_minute");
  const minutes = Number(row?.minutes);
  if (minutes !== machines.length * Math.ceil((rounds * intervalMs) / 60_000)) throw new Error(`${minutes} minutes`);
  print(
    "roll-up, CPU a machine and hour of it",
    ms(((treeCpuMs() - cpu) / hours) * (3_600_000 / (rounds * intervalMs))),
  );
  print("bytes a minute and metric", ((await bytesOf("sample_minute")) / minutes / slots.length).toFixed(1));
}

/** 7 days of five-minute roll-ups for five nodes among others. */
async function chart(): Promise<void> {
  const chosen = machines.slice(0, 5);
  const chartEndMs = Math.floor(now / 300_000) * 300_000;
  await samples.rollUp(now + 3_600_000);
  for (let day = 7; day >= 0; day -= 1) await history.prepare(now - day * 86_400_000);
  await database.query("truncate sample_five_minutes, sample_stale");
  for (let day = 7; day > 0; day -= 1) {
    const start = new Date(chartEndMs - day * 86_400_000).toISOString();
    await database.session((client) => client.query(aDay, [machines.slice(0, 20), start]));
  }
  await database.session((client) => client.query("vacuum analyze sample_five_minutes"));
  const requested = {
    machineIds: chosen,
    metricNumbers: [1],
    fromS: chartEndMs / 1_000 - 604_800,
    toS: chartEndMs / 1_000,
    resolutionS: 300,
  };
  const times: number[] = [];
  const cpu = treeCpuMs();
  for (let query = 0; query < Number(values.queries); query += 1) {
    const startedAt = performance.now();
    const points = await samples.points(requested);
    times.push(performance.now() - startedAt);
    if (points.length !== 5 * 2_016) throw new Error(`${points.length} points`);
  }
  print("7 d at 5m of 5 nodes, CPU", ms((treeCpuMs() - cpu) / times.length));
  print(
    "7 d at 5m of 5 nodes, p50 / p95",
    `${ms(percentile(times, 0.5))} / ${ms(percentile(times, 0.95))}`,
    "<= 20 ms p95",
  );
}

function printRow(name: string, cpuMs: number, bytes: number): void {
  const count = machines.length * rounds * slots.length;
  const perCore = Math.round((count / cpuMs) * 1_000).toLocaleString("en");
  print(`${name}: values a second and core; bytes a value`, `${perCore}; ${(bytes / count).toFixed(1)}`);
}

function valuesOf(): number[] {
  return slots.map(() => Math.random() * 100);
}

async function bytesOf(table: string): Promise<number> {
  const [row] = await database.query<{ bytes: string }>(
    "select sum(pg_total_relation_size(relid)) as bytes from pg_partition_tree($1::regclass)",
    [table],
  );
  return (
    Number(row?.bytes) ||
    Number((await database.query<{ bytes: string }>(`select pg_total_relation_size('${table}') as bytes`))[0]?.bytes)
  );
}

/** CPU of this process and all its descendants, milliseconds. */
function treeCpuMs(): number {
  const parents = new Map<number, number>();
  for (const name of readdirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const stat = readFileSync(`/proc/${name}/stat`, "utf8");
      parents.set(Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]));
    } catch {
      // The process ended since it was listed.
    }
  }
  const isHoldfast = (pid: number | undefined): boolean =>
    pid !== undefined && (pid === process.pid || isHoldfast(parents.get(pid)));
  return [...parents.keys()].filter(isHoldfast).reduce((sum, pid) => sum + cpuMsOf(pid), 0);
}
