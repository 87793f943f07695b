import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { chown } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import type { Intervals } from "@holdfast/testing/machines/watch-intervals.ts";
import { createPgBackRest, type PgBackRest } from "./peers/pgbackrest.ts";
import { type BackupFixture, type JobCost, type MadeBackup, startBackupFixture } from "./support/backup-fixture.ts";
import type { Cost } from "./support/cost.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Backups and restores of one PostgreSQL: memory at two sizes; a full backup and an increment, alternating with
// pgBackRest and bare zstd.
const { values } = parseArgs({
  options: {
    small: { type: "string", default: "5" },
    scale: { type: "string", default: "70" },
    rounds: { type: "string", default: "5" },
    only: { type: "string", default: "memory,full,gaps,restore" },
  },
});

const parts = values.only.split(",");
/** The number of cores. */
const processes = 2;
const probeMs = 60_000;
const digest =
  "SELECT count(*)::int AS count, md5(string_agg(t::text, ',' ORDER BY aid)) AS sum FROM pgbench_accounts t";

printHost();
const fixture = await startBackupFixture();
const directory = mkdtempSync(join(tmpdir(), "backups-"));
try {
  if (parts.includes("memory")) {
    await filled(fixture, values.small);
    const small = await fixture.backup("b-small");
    memory("small", small, await fixture.restore([small]));
  }
  await filled(fixture, values.scale);
  const { uid, port, dataDirectory, socketDirectory } = fixture;
  await chown(directory, uid, uid);
  const peer = await createPgBackRest({ uid, port, dataDirectory, socketDirectory, directory });
  if (parts.includes("full")) await fullBackups(peer);
  if (parts.includes("gaps")) await probeGaps();
  if (parts.includes("restore")) await restoreAndIncrement(peer);
} finally {
  await fixture.remove();
  rmSync(directory, { recursive: true, force: true });
}

async function fullBackups(peer: PgBackRest): Promise<void> {
  const holdfastBackups: MadeBackup[] = [];
  const [peerBackups, floor]: [Cost[], Cost[]] = [[], []];
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    holdfastBackups.push(await fixture.backup(`b-${round}`));
    peerBackups.push(await peer.backup("full", processes));
    floor.push(await fixture.piped(`| zstd -1 -T1 -q -f -o '${directory}/floor.zst'`));
  }
  // The first runs are warm-ups.
  for (const each of [holdfastBackups, peerBackups, floor]) each.shift();
  const costs = holdfastBackups.map(({ cost }) => cost);
  const bytes = Number(holdfastBackups.at(-1)?.reported.sourceBytes ?? 0);
  speed("full, Holdfast", costs, bytes);
  speed(`full, pgBackRest zst-1, ${processes} processes`, peerBackups, bytes);
  speed("full, pg_basebackup | zstd -1", floor, bytes);
  compare("full, MB/s against pgBackRest", peerBackups, costs, "wallMs", ">= 1.7x");
  compare("full, CPU against pgBackRest", costs, peerBackups, "cpuMs", "<= 0.6x");
  compare("full, MB/s against zstd alone", floor, costs, "wallMs", ">= 0.9x");
}

async function probeGaps(): Promise<void> {
  printGaps("alone", await fixture.probeGaps(() => sleep(probeMs)));
  const busy = await fixture.probeGaps(async () => {
    const end = Date.now() + probeMs;
    for (let number = 1; Date.now() < end; number += 1) await fixture.backup(`b-pace-${number}`);
  });
  printGaps("beside full backups", busy);
}

async function restoreAndIncrement(peer: PgBackRest): Promise<void> {
  const full = await fixture.backup("b-map", { pageMap: true });
  const bytes = Number(full.reported.sourceBytes);
  const restore = await fixture.restore([full]);
  memory("large", full, restore);
  await same();
  const into = join(directory, "restored");
  mkdirSync(into, { mode: 0o700 });
  await chown(into, fixture.uid, fixture.uid);
  if (!parts.includes("full")) await peer.backup("full", processes);
  const peerRestore = await peer.restore(into, processes);
  speed("restore with recovery and start, Holdfast", [restore], bytes);
  speed("restore of files alone, pgBackRest", [peerRestore], bytes);

  await touchFifth(fixture);
  const increment = await fixture.backup("b-fifth", { base: full, pageMap: true });
  const peerIncrement = await peer.backup("incr", processes);
  const peerBytes = await peer.storedBytes();
  const stored = Number(increment.reported.storedBytes);
  print("increment of a fifth of the pages: bytes, Holdfast; pgBackRest", `${mb(stored)}; ${mb(peerBytes)}`);
  print("increment, bytes against pgBackRest", times(stored / peerBytes), "<= 0.35x");
  print("increment, bytes against a full one", times(stored / Number(full.reported.storedBytes)), "<= 0.35x");
  compare("increment, time against pgBackRest", [increment.cost], [peerIncrement], "wallMs", "<= 0.8x");
  memory("increment", increment, await fixture.restore([full, increment]));
  await same();
}

async function filled({ pgbench, sql }: BackupFixture, scale: string): Promise<void> {
  // Free space in each page for the next version of a row.
  await pgbench("-i", "-q", "-F", "85", "-s", scale);
  const hashes = "SELECT i, md5(i::text) AS text";
  await sql("DROP TABLE IF EXISTS hashes");
  await sql(`CREATE TABLE hashes AS ${hashes} FROM generate_series(1, ${Number(scale) * 20_000}) AS i`);
  // Otherwise reads and vacuums would change its pages during one of the backups.
  await sql("VACUUM (FREEZE, ANALYZE) hashes");
}

/** Updates a row in each page of a random fifth of all pages. */
async function touchFifth({ sql }: BackupFixture): Promise<void> {
  const block = "(ctid::text::point)[0]::int";
  const pages = "generate_series(0, pg_relation_size('pgbench_accounts') / 8192 - 1) AS b";
  await sql(`UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE ctid IN (
    SELECT min(ctid) FROM pgbench_accounts WHERE ${block} IN (SELECT b FROM ${pages} WHERE random() < 0.2) GROUP BY ${block})`);
}

async function same(): Promise<void> {
  const [restored, source] = [await fixture.restored(digest), await fixture.sql(digest)];
  if (JSON.stringify(restored) !== JSON.stringify(source))
    throw new Error("what was restored is not what was backed up");
}

function memory(label: string, { reported, cost }: MadeBackup, restore: JobCost): void {
  const of = `${label}, ${mb(Number(reported.sourceBytes))} read`;
  print(`component's memory, backup (${of})`, mb(cost.residentBytes), "<= 256 MiB");
  print(`component's memory, restore (${of})`, mb(restore.residentBytes), "<= 256 MiB");
}

function printGaps(when: string, { probes, leaseRequests }: Intervals): void {
  const longest = (gaps: readonly number[]) => `${(Math.max(...gaps) / 1_000).toFixed(1)} s of ${gaps.length}`;
  print(`longest pause between probes, ${when}`, longest(probes), "< 5 s");
  print(`longest pause between requests for the primary lease, ${when}`, longest(leaseRequests), "< 6 s");
}

function speed(name: string, costs: readonly Cost[], bytes: number): void {
  const wall = median(costs.map(({ wallMs }) => bytes / 1e3 / wallMs));
  const cpu = median(costs.map(({ cpuMs }) => cpuMs / (bytes / 1e6)));
  print(name, `${wall.toFixed(0)} MB/s, ${cpu.toFixed(2)} CPU-s/GB`);
}

function compare(name: string, over: readonly Cost[], under: readonly Cost[], by: keyof Cost, bar = ""): void {
  const ratio = ratios(
    over.map((cost) => cost[by]),
    under.map((cost) => cost[by]),
  );
  print(name, `${times(ratio.median)} (${times(ratio.min)} - ${times(ratio.max)})`, bar);
}

function mb(bytes: number): string {
  return `${(bytes / 2 ** 20).toFixed(0)} MiB`;
}
