import { statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { addressOf } from "@holdfast/testing/api/clients.ts";
import type { ServiceJson } from "@holdfast/testing/api/service-json.ts";
import { startPlatform } from "@holdfast/testing/platform/platform.ts";
import { createServices, expectStatus, type RunningService } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Connection, RowDataPacket } from "mysql2/promise";
import { type BareMysql, makeBareMysql, runMysqlProgram } from "./peers/bare-mysql.ts";
import { median, ms, percentile, print, ratios, times } from "./support/figures.ts";
import { createHoldfastPair } from "./support/holdfast-pair.ts";
import { printHost } from "./support/host.ts";
import { openMysql } from "./support/mysql-rows.ts";
import { gapOf } from "./support/write-gaps.ts";

// MySQL: a new service beside a bare server; time without writes when a primary dies; a backup and a restore beside
// MySQL's own programs (as root).
const { values } = parseArgs({
  options: {
    only: { type: "string", default: "service,failover,dump" },
    rounds: { type: "string", default: "3" },
    doublings: { type: "string", default: "18" },
  },
});
const only = new Set(values.only.split(","));
const [rounds, doublings] = [Number(values.rounds), Number(values.doublings)];
const longMs = 900_000;
const tables = ["first", "second"] as const;
const dumpOptions = ["--single-transaction", "--routines", "--events", "--triggers", "--no-tablespaces"];

printHost();
const platform = await startPlatform();
const services = createServices(platform);
try {
  if (only.has("service")) await measureService();
  if (only.has("failover")) await measureFailover();
  if (only.has("dump")) await measureDump();
} finally {
  await platform.remove();
}

/** Size of the buffer pool of the service's plan, in bytes. */
async function bufferPoolOf(client: Connection): Promise<number> {
  const [rows] = await client.query<RowDataPacket[]>("SELECT @@GLOBAL.innodb_buffer_pool_size AS bytes");
  return Number(rows[0]?.["bytes"]);
}

async function measureService(): Promise<void> {
  const [holdfast, peer]: [number[], number[]] = [[], []];
  // The first of each warms caches.
  for (let round = 0; round <= rounds; round += 1) {
    const startedAt = performance.now();
    const { id } = await services.create(`new-${round}`, { database_type: "mysql" });
    await services.settled(id, "Running", longMs);
    const client = await openMysql(platform, await services.open(id));
    await client.query("SELECT 1");
    const wallMs = performance.now() - startedAt;
    const bufferPool = await bufferPoolOf(client);
    client.destroy();
    await services.delete(id);
    const bare = await makeBareMysql(bufferPool);
    await bare.remove();
    if (round === 0) continue;
    holdfast.push(wallMs);
    peer.push(bare.wallMs);
  }
  const ratio = ratios(holdfast, peer);
  print("POST to first SELECT over TLS by name, p50", ms(median(holdfast)));
  print("bare initialize + start + SELECT, p50", ms(median(peer)));
  print("new service, ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, "<= 1.0x");
}

async function measureFailover(): Promise<void> {
  const pair = await createHoldfastPair(platform, "mysql");
  try {
    for (const fault of ["engine killed", "machine stands still"] as const) {
      const gaps: number[] = [];
      for (let round = 0; round < rounds; round += 1) gaps.push(await gapOf(pair, fault));
      const range = `${ms(Math.min(...gaps))} - ${ms(Math.max(...gaps))}`;
      print(`${fault}: without a write by name, p50 (range)`, `${ms(median(gaps))} (${range})`);
      print("  p50 / p95", `${ms(median(gaps))} / ${ms(percentile(gaps, 0.95))}`, "<= 3 s / 4 s");
    }
    const missing = await pair.writer.missing();
    print("acknowledged rows that failures lost", `${missing} of ${pair.writer.acknowledgedAt.length}`, "0");
    if (missing > 0) throw new Error("acknowledged rows are missing in mode sync");
  } finally {
    await pair.close();
  }
}

async function measureDump(): Promise<void> {
  const source = await services.createRunning("dumped", { database_type: "mysql", storage_size_gb: 5 });
  const client = await openMysql(platform, source);
  const bare = await makeBareMysql(await bufferPoolOf(client));
  try {
    await fill(client);
    const sums = await checksums(client);
    const bytes = await exportTo(bare, source);
    const loadMs = await loadPeer(bare);
    const [dumps, peerDumps]: [number[], number[]] = [[], []];
    let backupId = "";
    for (let round = 0; round <= rounds; round += 1) {
      const startedAt = performance.now();
      backupId = await backup(source);
      const wallMs = performance.now() - startedAt;
      const peerMs = await dumpPeer(bare);
      if (round === 0) continue;
      dumps.push(wallMs);
      peerDumps.push(peerMs);
    }
    const restoredAt = performance.now();
    const copy = await restore(source, backupId);
    const restoreMs = performance.now() - restoredAt;
    const [copyClient, bareClient] = [await openMysql(platform, copy), await bare.open()];
    await bareClient.query("USE defaultdb");
    for (const each of [copyClient, bareClient])
      if ((await checksums(each)) !== sums) throw new Error("the data are not the source's");
    for (const each of [client, copyClient, bareClient]) each.destroy();
    const speed = (wallMs: number) => `${(bytes / 1e3 / wallMs).toFixed(1)} MB/s`;
    const ratio = ratios(peerDumps, dumps);
    print("SQL text of the data", `${(bytes / 1e6).toFixed(0)} MB`);
    print("backup, POST to completed", `${ms(median(dumps))}, ${speed(median(dumps))}`);
    print("mysqldump | zstd -1 | openssl", `${ms(median(peerDumps))}, ${speed(median(peerDumps))}`);
    print("dump, speed ratio", `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, ">= 1.7x");
    print("restore, POST to Running", `${ms(restoreMs)}, ${speed(restoreMs)}`);
    print("mysql < text, into a running server", `${ms(loadMs)}, ${speed(loadMs)}`);
    print("load, speed ratio", times(loadMs / restoreMs), ">= 3x");
  } finally {
    await bare.remove();
  }
}

/** Rows of sysbench's shape. */
async function fill(client: Connection): Promise<void> {
  const columns = "FLOOR(RAND() * 1e6), HEX(RANDOM_BYTES(60)), HEX(RANDOM_BYTES(30))";
  for (const table of tables) {
    const columnList = "id INT AUTO_INCREMENT PRIMARY KEY, k INT, c CHAR(120), pad CHAR(60), KEY (k)";
    await client.query(`CREATE TABLE ${table} (${columnList})`);
    await client.query(`INSERT INTO ${table} (k, c, pad) SELECT ${columns}`);
    for (let doubled = 0; doubled < doublings; doubled += 1)
      await client.query(`INSERT INTO ${table} (k, c, pad) SELECT ${columns} FROM ${table}`);
  }
}

async function checksums(client: Connection): Promise<string> {
  const [rows] = await client.query<RowDataPacket[]>(`CHECKSUM TABLE ${tables.join()}`);
  return JSON.stringify(rows.map((row): unknown => row["Checksum"]));
}

/** Exports the service's data by mysqldump; resolves with the size of the text. */
async function exportTo({ directory }: BareMysql, { connection, password }: RunningService): Promise<number> {
  const address = await addressOf(platform, connection.host);
  const server = [`--host=${address}`, `--port=${connection.port}`, "--user=app_user", "--ssl-mode=REQUIRED"];
  const options = [...dumpOptions, "--set-gtid-purged=OFF"];
  const argv = ["mysqldump", "--no-defaults", ...server, ...options, "--databases", "defaultdb"];
  await runMysqlProgram(argv, `"$@" > data.sql`, directory, password);
  return statSync(join(directory, "data.sql")).size;
}

function loadPeer({ login, directory }: BareMysql): Promise<number> {
  return runMysqlProgram(["mysql", ...login], `"$@" < data.sql`, directory);
}

function dumpPeer({ login, directory }: BareMysql): Promise<number> {
  const cipher = "openssl enc -aes-256-ctr -pbkdf2 -pass pass:bench";
  const shell = `"$@" | zstd -1 -q | ${cipher} > data.sql.zst.enc`;
  return runMysqlProgram(["mysqldump", ...login, ...dumpOptions, "--databases", "defaultdb"], shell, directory);
}

interface BackupJson {
  readonly id: string;
  readonly status: string;
}

async function backup({ service }: RunningService): Promise<string> {
  const path = `/managed-services/${service.id}/backups`;
  const { id } = expectStatus(await platform.rest.post<BackupJson>(path), 202).json;
  const status = await waitUntil(
    "the backup has ended",
    async () => {
      const { json } = expectStatus(await platform.rest.get<BackupJson>(`${path}/${id}`), 200);
      return ["completed", "failed"].includes(json.status) && json.status;
    },
    { withinMs: longMs, everyMs: 20 },
  );
  if (status !== "completed") throw new Error(`the backup ${status}`);
  return id;
}

async function restore({ service }: RunningService, backupId: string): Promise<RunningService> {
  const path = `/managed-services/${service.id}/backups/${backupId}/restore`;
  const body = { target_service_name: "loaded" };
  const { id } = expectStatus(await platform.rest.post<ServiceJson>(path, body), 202).json;
  await services.settled(id, "Running", longMs);
  return services.open(id);
}
