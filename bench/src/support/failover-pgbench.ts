import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import { asRoot, testProgram, testUid } from "@holdfast/testing/platform/platform-software.ts";
import type { Platform } from "@holdfast/testing/platform/platform.ts";
import { createServices, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { Client } from "pg";
import { type BarePair, createBarePair } from "../peers/bare-pair.ts";
import { print, ratios, times } from "./figures.ts";

const scale = 20;
const load = ["--no-vacuum", "--client=8", "--jobs=2"];

/** Connection of `pgbench` and `pg`, over TLS. */
interface Target {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly database: string;
}

/**
 * Transactions per second of pgbench on a primary with an asynchronous replica, against the same two servers without a
 * platform, alternating.
 */
export async function measurePgbench(on: Platform, pairs: number, seconds: number): Promise<void> {
  const services = createServices(on);
  const main = await services.createRunning("pgbench", { node_count: 2, storage_size_gb: 5 });
  await services.settled(main.service.id, "Running");
  const bare = await bareBeside(on, main);
  const targets = { holdfast: await targetOf(on, main), bare: targetOfBare(bare, bare.primaryPort) };
  try {
    for (const target of Object.values(targets)) await pgbench(target, "--initialize", `--scale=${scale}`, "--quiet");
    const found = { holdfast: [] as number[], bare: [] as number[] };
    // The first of each warms caches; then the order alternates.
    for (let pair = 0; pair <= pairs; pair += 1) {
      for (const name of pair % 2 === 0 ? (["holdfast", "bare"] as const) : (["bare", "holdfast"] as const)) {
        const rate = await transactions(targets[name], seconds);
        if (pair > 0) found[name].push(rate);
        console.error(`pgbench, ${name}: ${rate.toFixed(0)} transactions a second`);
      }
    }
    await check(on, main, bare);
    const { median, min, max } = ratios(found.holdfast, found.bare);
    print("pgbench with an asynchronous replica to bare", times(median), ">= 0.97x");
    print("  smallest and largest", `${times(min)} - ${times(max)}`);
  } finally {
    await bare.close();
    await services.delete(main.service.id);
  }
}

async function bareBeside(on: Platform, { service }: RunningService): Promise<BarePair> {
  const engine = (role: string) => {
    const node = service.nodes.find((each) => each.role === role)?.id;
    return on.processes().machines.find(({ id }) => id === node)?.engine;
  };
  // A service is Running as soon as its primary is.
  const replica = await waitUntil("the replica's engine runs", () => engine("replica"));
  return createBarePair(engine("primary") ?? 0, replica);
}

async function targetOf(on: Platform, { connection, password }: RunningService): Promise<Target> {
  const { port, user, database } = connection;
  return { host: await addressOf(on, connection.host), port, user, password, database };
}

function targetOfBare({ user }: BarePair, port: number): Target {
  return { host: "127.0.0.1", port, user, password: "", database: "postgres" };
}

/** Transactions per second; throws if their history table lacks a row. */
async function transactions(target: Target, seconds: number): Promise<number> {
  const before = await count(target);
  const output = await pgbench(target, ...load, `--time=${seconds}`);
  const processed = Number(/transactions actually processed: (\d+)/.exec(output)?.[1]);
  const rows = (await count(target)) - before;
  if (rows !== processed) throw new Error(`${rows} rows of ${processed} transactions`);
  return Number(/^tps = ([\d.]+)/m.exec(output)?.[1]);
}

/** Throws unless the replica of either pair follows its primary and has all rows. */
async function check(on: Platform, { service }: RunningService, bare: BarePair): Promise<void> {
  const target = targetOfBare(bare, bare.replicaPort);
  const rows = await count(targetOfBare(bare, bare.primaryPort));
  await waitUntil("the bare replica has all rows", async () => (await count(target)) === rows);
  const [row] = await query<{ follows: boolean }>(target, "SELECT pg_is_in_recovery() AS follows");
  if (row?.follows !== true) throw new Error("the bare replica follows nobody");
  const replica = service.nodes.find(({ role }) => role === "replica")?.id;
  const path = `/managed-services/${service.id}/nodes/${replica}/replication-status`;
  await waitUntil("our replica has all", async () => {
    const { json } = await on.rest.get<{ sync_state: string; lag_bytes: number }>(path);
    return json.sync_state === "streaming" && json.lag_bytes < 1 << 20;
  });
}

async function count(target: Target): Promise<number> {
  const [row] = await query<{ count: number }>(target, "SELECT count(*)::int AS count FROM pgbench_history");
  return row?.count ?? Number.NaN;
}

async function query<Row extends object>(target: Target, sql: string): Promise<Row[]> {
  const client = new Client({ ...target, ssl: { rejectUnauthorized: false } });
  await client.connect();
  try {
    return (await client.query<Row>(sql)).rows;
  } finally {
    await client.end();
  }
}

async function pgbench({ host, port, user, password, database }: Target, ...args: string[]): Promise<string> {
  const postgresql = testProgram("postgresql", "17");
  const environment = ["PGSSLMODE=require", `PGPASSWORD=${password}`];
  const whom = [`--host=${host}`, `--port=${port}`, `--username=${user}`];
  const program = join(postgresql.executable("postgres"), "..", "pgbench");
  const argv = ["/usr/bin/env", ...environment, program, ...whom, ...args, database];
  const { command, args: words } = postgresql.launch({ argv, uid: testUid, binds: [], asRoot });
  return (await promisify(execFile)(command, [...words], { cwd: "/" })).stdout;
}
