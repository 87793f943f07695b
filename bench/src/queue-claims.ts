import { parseArgs } from "node:util";
import { createQueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { ms, percentile, print, times } from "./support/figures.ts";
import { printHost } from "./support/host.ts";

// Cost of a claim of ten beside many messages that it must skip, or that are deleted and retained by an old snapshot:
// pages by EXPLAIN, which do not depend on other load, and the time of many claims. Few and many messages are in two
// databases, which alternate, so that other load affects both.
const { values } = parseArgs({
  options: {
    rows: { type: "string", default: "1000000" },
    few: { type: "string", default: "1000" },
    claims: { type: "string", default: "1000" },
  },
});
const [many, few, claims] = [Number(values.rows), Number(values.few), Number(values.claims)];

interface Plan {
  readonly "QUERY PLAN": readonly [{ readonly Plan: Record<string, number> }];
}

const kinds = {
  ready: ["visible_at", "clock_timestamp()"],
  delayed: ["visible_at", "now() + interval '1 h'"],
  "in flight": ["visible_at, attempt_count, claimed_by", "now() + interval '1 h', 1, 'other'"],
  // Messages on their last attempt and past it: the measured claims move them to the dead ones, a hundred each.
  exhausted: ["visible_at, attempt_count", "now() - interval '1 s', 5"],
} as const;

/** A database, and its number of messages of a kind. */
interface Side {
  readonly rows: number;
  readonly database: Awaited<ReturnType<typeof createQueueDatabase>>;
  readonly client: Awaited<ReturnType<Side["database"]["connect"]>>;
}

const put = ({ client }: Side, queue: string, count: number, [columns, of]: readonly [string, string]) =>
  client.query(
    `INSERT INTO mdb_queue.messages (queue_name, payload, ${columns}) SELECT $1, '{"order": 17}', ${of} FROM generate_series(1, $2)`,
    [queue, count],
  );

async function pagesOf({ client }: Side, queue: string): Promise<number> {
  const { rows } = await client.query<Plan>(
    `EXPLAIN (ANALYZE, BUFFERS, FORMAT json) SELECT * FROM mdb_queue.claim('${queue}', 'w', 10)`,
  );
  const plan = rows[0]?.["QUERY PLAN"][0].Plan ?? {};
  if (plan["Actual Rows"] !== 10) throw new Error(`a claim of ten took ${plan["Actual Rows"]}`);
  return (plan["Shared Hit Blocks"] ?? 0) + (plan["Shared Read Blocks"] ?? 0);
}

async function claimMs({ client }: Side, queue: string): Promise<number> {
  const startedAt = performance.now();
  const { rowCount } = await client.query("SELECT * FROM mdb_queue.claim($1, 'w', 10)", [queue]);
  if (rowCount !== 10) throw new Error(`a claim of ten took ${rowCount}`);
  return performance.now() - startedAt;
}

/** Pages of one claim and the time of many, in a queue with enough claimable messages beside those of `fill`. */
async function compare(
  label: string,
  queue: string,
  sides: readonly [Side, Side],
  fill: (side: Side) => Promise<unknown>,
): Promise<void> {
  const pages: number[] = [];
  for (const side of sides) {
    await side.database.createQueue(queue);
    await fill(side);
    await put(side, queue, 10 * (claims + 2), kinds.ready);
    const tables = "mdb_queue.messages, mdb_queue.dead_messages";
    await side.database.asPlatform((session) => session.rows(`VACUUM ANALYZE ${tables}`));
    await side.database.asPlatform((session) => session.rows("CHECKPOINT"));
    await pagesOf(side, queue);
    pages.push(await pagesOf(side, queue));
  }
  const each: [number[], number[]] = [[], []];
  for (let n = 0; n < claims; n += 1) for (const at of [0, 1] as const) each[at].push(await claimMs(sides[at], queue));
  const of = (share: number) => [percentile(each[0], share), percentile(each[1], share)] as const;
  const [p50, p99] = [of(0.5), of(0.99)];
  print(`${many} ${label}: pages of a claim of ten`, `${pages[1]} to ${pages[0]}`);
  print("  p50", `${ms(p50[1])}, ${times(p50[1] / p50[0])}`);
  print("  p99", `${ms(p99[1])}, ${times(p99[1] / p99[0])}`, "<= 1.5x");
}

/** A redrive of all dead messages, and claims among the ready ones that it creates. */
async function redrive(side: Side, queue: string): Promise<void> {
  const batches: number[] = [];
  for (let moved = 1; moved > 0; ) {
    const startedAt = performance.now();
    const { rows } = await side.client.query<{ n: string }>("SELECT mdb_queue.redrive($1) AS n", [queue]);
    moved = Number(rows[0]?.n);
    batches.push(performance.now() - startedAt);
  }
  const [first = 0] = batches;
  print(`redrive of ${side.rows}, the first and the last 10,000`, `${ms(first)}; ${ms(batches.at(-2) ?? 0)}`);
  print("  pages of a claim of ten among them", String(await pagesOf(side, queue)));
}

/** Claims in a queue whose finished messages are retained by an old snapshot. */
async function underSnapshot(side: Side, queue: string): Promise<void> {
  await side.database.createQueue(queue);
  const old = await side.database.connect();
  await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
  await old.query("SELECT count(*) FROM mdb_queue.queues");
  await put(side, queue, side.rows, kinds.ready);
  await side.client.query("DELETE FROM mdb_queue.messages WHERE queue_name = $1", [queue]);
  await put(side, queue, 10_000, kinds.ready);
  const firstPages = await pagesOf(side, queue);
  const next: number[] = [];
  for (let n = 0; n < 200; n += 1) next.push(await pagesOf(side, queue));
  print(`${side.rows} done, retained by a snapshot: pages, a session's first claim`, String(firstPages));
  print("  its next claims, median; max", `${percentile(next, 0.5)}; ${Math.max(...next)}`);
  await old.end();
}

printHost();
const databases = [await createQueueDatabase(), await createQueueDatabase()] as const;
try {
  const open = async (at: 0 | 1, rows: number): Promise<Side> => {
    const database = databases[at];
    return { rows, database, client: await database.connect() };
  };
  const sides = [await open(0, few), await open(1, many)] as const;
  for (const [kind, columns] of Object.entries(kinds)) {
    const queue = `q-${kind.replace(" ", "-")}`;
    await compare(kind, queue, sides, (side) => put(side, queue, side.rows, columns));
  }
  await compare("dead", "q-dead", sides, ({ rows, database }) =>
    database.asPlatform((session) =>
      session.rows(
        `INSERT INTO mdb_queue.dead_messages (id, queue_name, payload, max_attempts, visible_at, attempt_count, enqueued_at)
           SELECT nextval('mdb_queue.messages_id_seq'), 'q-dead', '{"order": 17}', 5, now(), 5, now() FROM generate_series(1, $1::integer)`,
        [rows],
      ),
    ),
  );
  await redrive(sides[1], "q-dead");
  await underSnapshot(sides[1], "kept");
  for (const { client } of sides) await client.end();
} finally {
  for (const database of databases) await database.remove();
}
