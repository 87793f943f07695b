import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { createQueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { graphileWorkerQueue } from "./queues/graphile-worker-queue.ts";
import { holdfastQueue, naiveQueue } from "./queues/holdfast-queue.ts";
import { pgBossQueue } from "./queues/pg-boss-queue.ts";
import type { QueuePeer } from "./queues/queue-peer.ts";
import { median, print, ratios, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Messages claimed and acknowledged per second by queues on one PostgreSQL with one pool: Holdfast's and a peer's
// alternate, each with the same number of waiting messages. Then the same while an old transaction retains every dead
// row.
const { values } = parseArgs({
  options: {
    messages: { type: "string", default: "20000" },
    singles: { type: "string", default: "2000" },
    pairs: { type: "string", default: "5" },
    "old-seconds": { type: "string", default: "300" },
    "later-seconds": { type: "string", default: "300" },
  },
});
const [messages, singles, pairs] = [Number(values.messages), Number(values.singles), Number(values.pairs)];
const oldMs = Number(values["old-seconds"]) * 1_000;
const laterMs = Number(values["later-seconds"]) * 1_000;
const concurrency = 100;

printHost();
const database = await createQueueDatabase();
try {
  const pool = database.pool(10);
  for (const name of ["batched", "single", "naive"])
    await database.createQueue(name, { visibilityTimeoutSeconds: 600 });
  const batched = holdfastQueue(pool, "batched", { concurrency, batch: 500 });
  const single = holdfastQueue(pool, "single", { concurrency: 1, batch: 1 });
  const naive = naiveQueue(pool, "naive", 100);
  const graphile = await graphileWorkerQueue(pool, { concurrency, localQueue: 500 });
  const bossBatched = await pgBossQueue(pool, 100);
  const bossSingle = await pgBossQueue(pool, 1);

  /** Messages per second; throws unless each was processed. */
  async function rateOf(queue: QueuePeer, count: number): Promise<number> {
    await queue.fill(count);
    const startedAt = performance.now();
    const done = await queue.drain();
    const rate = (done / (performance.now() - startedAt)) * 1_000;
    const left = await queue.left();
    if (done !== count || left !== 0) throw new Error(`${queue.name} did ${done} of ${count}, and left ${left}`);
    return rate;
  }

  async function compare(holdfast: QueuePeer, peer: QueuePeer, count: number, bar: string): Promise<void> {
    const rates: { holdfast: number[]; peer: number[] } = { holdfast: [], peer: [] };
    for (let n = 0; n < pairs; n += 1) {
      for (const first of n % 2 === 0 ? ([holdfast, peer] as const) : ([peer, holdfast] as const))
        rates[first === holdfast ? "holdfast" : "peer"].push(await rateOf(first, count));
    }
    const { median: middle, min, max } = ratios(rates.holdfast, rates.peer);
    print(`${holdfast.name}, a second`, median(rates.holdfast).toFixed(0));
    print(`  ${peer.name}`, median(rates.peer).toFixed(0));
    print("  ratio", `${times(middle)} (${times(min)} - ${times(max)})`, bar);
  }

  /** The minimum cost of a message by itself: one round trip and one commit. */
  async function bareRate(count: number): Promise<number> {
    const client = await database.connect();
    await client.query("CREATE TABLE bare (id integer PRIMARY KEY, n integer)");
    await client.query("INSERT INTO bare VALUES (1, 0)");
    const startedAt = performance.now();
    for (let n = 0; n < count; n += 1) await client.query("UPDATE bare SET n = n + 1 WHERE id = 1");
    const rate = (count / (performance.now() - startedAt)) * 1_000;
    await client.end();
    return rate;
  }

  await compare(batched, graphile, messages, ">= 1.25x");
  await compare(batched, bossBatched, messages, ">= 4x");
  await compare(single, bossSingle, singles, ">= 10x");
  print("  an update of one row and its commit, a second", (await bareRate(singles)).toFixed(0));
  await compare(batched, naive, messages, "");

  // The old transaction's snapshot precedes all work: dead rows stay in table and indexes.
  const clean = { holdfast: await rateOf(batched, messages), graphile: await rateOf(graphile, messages) };
  const size = async () =>
    Number((await pool.query<{ n: string }>("SELECT pg_table_size('mdb_queue.messages') AS n")).rows[0]?.n ?? 0);
  // Before it, the table is that of a queue with the same number of waiting messages.
  await batched.fill(messages);
  await database.asPlatform((session) => session.rows("VACUUM mdb_queue.messages"));
  const sizeBefore = await size();
  await batched.drain();
  const old = await database.connect();
  await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await old.query("SELECT count(*) FROM mdb_queue.queues");
  const until = performance.now() + oldMs;
  const under: { holdfast: number[]; graphile: number[] } = { holdfast: [], graphile: [] };
  do {
    under.holdfast.push(await rateOf(batched, messages));
    under.graphile.push(await rateOf(graphile, messages));
  } while (performance.now() < until);
  await old.end();
  const last = (rates: readonly number[]) => rates.at(-1) ?? Number.NaN;
  print(`under a transaction of ${oldMs / 1_000} s, the last ${messages}`, last(under.holdfast).toFixed(0));
  print("  of clean", times(last(under.holdfast) / clean.holdfast), ">= 0.8x");
  print("  graphile-worker, of clean", times(last(under.graphile) / clean.graphile));
  const sizeUnder = await size();
  const mib = (bytes: number) => `${(bytes / (1 << 20)).toFixed(1)} MiB`;
  print("table before it; at its end", `${mib(sizeBefore)}; ${mib(sizeUnder)}`);
  // Autovacuum truncates the empty end of the table.
  const ended = performance.now();
  let sizeLater = await size();
  while (sizeLater > 2 * sizeBefore && performance.now() - ended < laterMs) {
    await sleep(1_000);
    sizeLater = await size();
  }
  const afterS = ((performance.now() - ended) / 1_000).toFixed(0);
  print(`table ${afterS} s later`, `${mib(sizeLater)}, ${times(sizeLater / sizeBefore)}`, "<= 2x after 300 s");

  for (const peer of [graphile, bossBatched, bossSingle]) await peer.close();
} finally {
  await database.remove();
}
