import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { chown } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { setTimeout as sleep } from "node:timers/promises";
import type { Pace } from "@holdfast/test/support/machines/watch-pace.ts";
import { createPgBackRest } from "./peers/pgbackrest.ts";
import { type BackupGround, type JobCost, type MadeBackup, startBackupGround } from "./support/backup-ground.ts";
import type { Cost } from "./support/cost.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Backups and restores of one PostgreSQL: memory at two sizes, a full one and an increment against pgBackRest and bare zstd, in turn.
const { values } = parseArgs({
  options: {
    small: { type: "string", default: "5" },
    scale: { type: "string", default: "70" },
    rounds: { type: "string", default: "5" },
  },
});

/** As many as there are cores. */
const processes = 2;
const paceMs = 60_000;
const digest =
  "SELECT count(*)::int AS count, md5(string_agg(t::text, ',' ORDER BY aid)) AS sum FROM pgbench_accounts t";

printHost();
const ground = await startBackupGround();
const directory = mkdtempSync(join(tmpdir(), "backups-"));
try {
  await filled(ground, values.small);
  const small = await ground.backup("b-small");
  memory("small", small, await ground.restore([small]));

  await filled(ground, values.scale);
  const { uid, port, dataDirectory, socketDirectory } = ground;
  await chown(directory, uid, uid);
  const peer = await createPgBackRest({ uid, port, dataDirectory, socketDirectory, directory });
  const ours: MadeBackup[] = [];
  const [theirs, floor]: [Cost[], Cost[]] = [[], []];
  for (let round = 0; round <= Number(values.rounds); round += 1) {
    ours.push(await ground.backup(`b-${round}`));
    theirs.push(await peer.backup("full", processes));
    floor.push(await ground.piped(`| zstd -1 -T1 -q -f -o '${directory}/floor.zst'`));
  }
  // The first ones warm up.
  for (const each of [ours, theirs, floor]) each.shift();
  const costs = ours.map(({ cost }) => cost);
  const bytes = Number(ours.at(-1)?.told.sourceBytes ?? 0);
  speed("full, ours", costs, bytes);
  speed(`full, pgBackRest zst-1, ${processes} processes`, theirs, bytes);
  speed("full, pg_basebackup | zstd -1", floor, bytes);
  compare("full, MB/s against pgBackRest", theirs, costs, "wallMs", ">= 1.7x");
  compare("full, CPU against pgBackRest", costs, theirs, "cpuMs", "<= 0.6x");
  compare("full, MB/s against zstd alone", floor, costs, "wallMs", ">= 0.9x");

  paced("alone", await ground.pace(() => sleep(paceMs)));
  const busy = await ground.pace(async () => {
    const end = Date.now() + paceMs;
    for (let number = 1; Date.now() < end; number += 1) await ground.backup(`b-pace-${number}`);
  });
  paced("beside full backups", busy);

  const full = await ground.backup("b-map", { pageMap: true });
  const restore = await ground.restore([full]);
  memory("large", full, restore);
  await same();
  const into = join(directory, "restored");
  mkdirSync(into, { mode: 0o700 });
  await chown(into, uid, uid);
  const peerRestore = await peer.restore(into, processes);
  speed("restore with recovery and start, ours", [restore], bytes);
  speed("restore of files alone, pgBackRest", [peerRestore], bytes);

  await touchFifth(ground);
  const increment = await ground.backup("b-fifth", { base: full, pageMap: true });
  const peerIncrement = await peer.backup("incr", processes);
  const peerBytes = await peer.storedBytes();
  const stored = Number(increment.told.storedBytes);
  print("increment of a fifth of the pages: bytes, ours; pgBackRest", `${mb(stored)}; ${mb(peerBytes)}`);
  print("increment, bytes against pgBackRest", times(stored / peerBytes), "<= 0.35x");
  print("increment, bytes against a full one", times(stored / Number(full.told.storedBytes)), "<= 0.35x");
  compare("increment, time against pgBackRest", [increment.cost], [peerIncrement], "wallMs");
  memory("increment", increment, await ground.restore([full, increment]));
  await same();
} finally {
  await ground.remove();
  rmSync(directory, { recursive: true, force: true });
}

async function filled({ pgbench, sql }: BackupGround, scale: string): Promise<void> {
  // A row finds room for its next version in its own page.
  await pgbench("-i", "-q", "-F", "85", "-s", scale);
  const hashes = "SELECT i, md5(i::text) AS text";
  await sql("DROP TABLE IF EXISTS hashes");
  await sql(`CREATE TABLE hashes AS ${hashes} FROM generate_series(1, ${Number(scale) * 20_000}) AS i`);
  // Otherwise whoever reads or vacuums it changes its pages, in one backup or the other.
  await sql("VACUUM (FREEZE, ANALYZE) hashes");
}

/** A row of each page of a fifth of all pages, whichever these are. */
async function touchFifth({ sql }: BackupGround): Promise<void> {
  const block = "(ctid::text::point)[0]::int";
  const pages = "generate_series(0, pg_relation_size('pgbench_accounts') / 8192 - 1) AS b";
  await sql(`UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE ctid IN (
    SELECT min(ctid) FROM pgbench_accounts WHERE ${block} IN (SELECT b FROM ${pages} WHERE random() < 0.2) GROUP BY ${block})`);
}

async function same(): Promise<void> {
  const [restored, source] = [await ground.restored(digest), await ground.sql(digest)];
  if (JSON.stringify(restored) !== JSON.stringify(source))
    throw new Error("what was restored is not what was backed up");
}

function memory(what: string, { told, cost }: MadeBackup, restore: JobCost): void {
  const of = `${what}, ${mb(Number(told.sourceBytes))} read`;
  print(`component's memory, backup (${of})`, mb(cost.residentBytes), "<= 256 MiB");
  print(`component's memory, restore (${of})`, mb(restore.residentBytes), "<= 256 MiB");
}

function paced(when: string, { probes, rights }: Pace): void {
  const longest = (gaps: readonly number[]) => `${(Math.max(...gaps) / 1_000).toFixed(1)} s of ${gaps.length}`;
  print(`longest pause between probes, ${when}`, longest(probes), "< 5 s");
  print(`longest pause between requests for the right, ${when}`, longest(rights), "< 6 s");
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
