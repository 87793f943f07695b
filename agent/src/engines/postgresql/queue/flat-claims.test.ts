import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";

const many = 20_000;

describe.skipIf(!hasEngine("postgresql", "17"))("a claim reads no more index entries", () => {
  let database: QueueDatabase;
  let client: pg.Client;
  beforeAll(async () => {
    database = await createQueueDatabase();
    client = await database.connect();
  });
  afterAll(async () => {
    await client?.end();
    await database?.remove();
  });

  const fill = (queue: string, count: number, columns: string, values: string) =>
    client.query(
      `INSERT INTO mdb_queue.messages (queue_name, payload, ${columns}) SELECT $1, '{}', ${values} FROM generate_series(1, $2)`,
      [queue, count],
    );

  /** Number of entries of all message indexes that this session has read. */
  async function entriesRead(session: pg.Client): Promise<number> {
    await session.query("SELECT pg_stat_force_next_flush()");
    const { rows } = await session.query<{ n: string }>(
      "SELECT sum(idx_tup_read) AS n FROM pg_stat_user_indexes WHERE schemaname = 'mdb_queue' AND relname = 'messages'",
    );
    return Number(rows[0]?.n);
  }

  /** Number of index entries that a claim of 10 messages reads. */
  async function readsOf(queue: string, ...bounds: readonly string[]): Promise<number> {
    const before = await entriesRead(client);
    const { rows } = await client.query("SELECT * FROM mdb_queue.claim($1, 'w', 10, NULL, $2, $3)", [
      queue,
      bounds[0] ?? null,
      bounds[1] ?? null,
    ]);
    expect(rows).toHaveLength(10);
    return (await entriesRead(client)) - before;
  }

  const hour = "interval '1 h'";
  it.each([
    ["ready messages", "visible_at", "clock_timestamp()"],
    ["messages that were delayed and are ready", "visible_at, enqueued_at", `now() - ${hour}, now() - 2 * ${hour}`],
    ["delayed messages", "visible_at", `now() + ${hour}`],
    ["messages in flight", "visible_at, attempt_count, claimed_by", `now() + ${hour}, 1, 'other'`],
    ["messages on their last attempt", "visible_at, attempt_count, claimed_by", `now() + ${hour}, 5, 'other'`],
  ])("when there are many %s", async (what, columns, values) => {
    const [few, full] = [`few ${what}`, `full ${what}`].map((name) => name.replaceAll(/[ ,]/g, "-")) as [
      string,
      string,
    ];
    for (const [queue, count] of [
      [few, 20],
      [full, many],
    ] as const) {
      await database.createQueue(queue);
      await fill(queue, count, columns, values);
      await fill(queue, 20, "visible_at", "clock_timestamp()");
    }
    expect(await readsOf(full)).toBeLessThanOrEqual((await readsOf(few)) + 10);
  });

  it.each([
    ["delayed", "visible_at", `now() + ${hour}`],
    ["in flight", "visible_at, attempt_count, claimed_by", `now() + ${hour}, 1, 'other'`],
  ])(
    "when most messages are ready, those of its queue are %s, and statistics are current",
    async (what, columns, values) => {
      const queue = `behind-${what.replace(" ", "-")}`;
      for (const name of [`ready-before-${queue}`, queue]) await database.createQueue(name);
      await fill(`ready-before-${queue}`, many, "visible_at", "clock_timestamp()");
      await fill(queue, many, columns, values);
      await fill(queue, 20, "visible_at", "clock_timestamp()");
      await database.asPlatform((session) => session.rows("VACUUM ANALYZE mdb_queue.messages"));
      await client.end();
      client = await database.connect();
      expect(await readsOf(queue)).toBeLessThan(100);
      await client.query("DELETE FROM mdb_queue.messages");
    },
  );

  it("when an old snapshot keeps dead rows, from the end of the last claim on", async () => {
    await database.createQueue("kept");
    await fill("kept", many, "visible_at", "clock_timestamp()");
    const old = await database.connect();
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.query("SELECT count(*) FROM mdb_queue.queues");
    const { rows } = await client.query<{ id: string }>(
      "DELETE FROM mdb_queue.messages WHERE queue_name = 'kept' RETURNING id",
    );
    const last = rows.map(({ id }) => Number(id)).reduce((a, b) => Math.max(a, b));
    await fill("kept", 20, "visible_at", "clock_timestamp()");
    expect(await readsOf("kept", String(last), "infinity")).toBeLessThan(100);
    // From the beginning it reads all of them.
    expect(await readsOf("kept", "0", "-infinity")).toBeGreaterThan(many);
    await old.end();
  });

  it("when an old snapshot keeps dead rows, in a session that has claimed before", async () => {
    await database.createQueue("remembered");
    const old = await database.connect();
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.query("SELECT count(*) FROM mdb_queue.queues");
    // Each kind: acked without a delay, after one, and on the last attempt.
    await fill("remembered", many, "visible_at", "clock_timestamp()");
    await fill("remembered", many, "visible_at, enqueued_at", `now() - ${hour}, now() - 2 * ${hour}`);
    await fill("remembered", many, "visible_at, attempt_count, claimed_by", `now() - ${hour}, 5, 'other'`);
    await client.query("DELETE FROM mdb_queue.messages WHERE queue_name = 'remembered'");
    await fill("remembered", 10, "visible_at", "clock_timestamp()");
    expect(await readsOf("remembered")).toBeGreaterThan(3 * many);
    // A full scan may come between, so wait for a cheap claim.
    await expect
      .poll(async () => {
        await fill("remembered", 10, "visible_at", "clock_timestamp()");
        return readsOf("remembered");
      })
      .toBeLessThan(200);
    // Delayed and nacked messages are still found as soon as they are visible.
    await expect
      .poll(async () => {
        await fill("remembered", 10, "visible_at", "clock_timestamp()");
        const { rows } = await client.query("SELECT id FROM mdb_queue.claim('remembered', 'giver', 10)");
        const ids = rows.map(({ id }) => id);
        await client.query("SELECT mdb_queue.nack('remembered', 'giver', $1, 0)", [ids]);
        const reads = await readsOf("remembered");
        await client.query("DELETE FROM mdb_queue.messages WHERE queue_name = 'remembered'");
        return reads;
      })
      .toBeLessThan(500);
    await old.end();
  });

  it("when the statistics are of an empty table, nor does an ack", async () => {
    await database.createQueue("emptied");
    const old = await database.connect();
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.query("SELECT count(*) FROM mdb_queue.queues");
    await fill("emptied", many, "visible_at", "clock_timestamp()");
    await client.query("DELETE FROM mdb_queue.messages");
    await database.asPlatform((session) => session.rows("ANALYZE mdb_queue.messages"));
    // Plans are cached by session.
    const newClient = await database.connect();
    const { rows } = await client.query<{ id: string }>(
      "INSERT INTO mdb_queue.messages (queue_name, payload, max_attempts) SELECT 'emptied', '{}', 5 FROM generate_series(1, $1) RETURNING id",
      [many],
    );
    const after = Number(rows[0]?.id) - 1;
    let acks: string[] = [];
    for (let round = 0; round < 10; round += 1) {
      const before = await entriesRead(newClient);
      const { rows: claimed } = await newClient.query<{ id: string }>(
        "SELECT id FROM mdb_queue.ack_and_claim('emptied', 'w', $1, array_fill('w'::text, ARRAY[$2::integer]), 500, 60, $3, 'infinity')",
        [acks, acks.length, after],
      );
      expect(claimed).toHaveLength(500);
      acks = claimed.map(({ id }) => id);
      expect((await entriesRead(newClient)) - before).toBeLessThan(many / 2);
    }
    await newClient.end();
    await old.end();
  });

  it("and a session whose setting was changed by hand finds all messages within a minute", async () => {
    await database.createQueue("by-hand");
    await fill("by-hand", 10, "visible_at", "clock_timestamp()");
    const name = "SELECT 'mdb_queue.look_' || to_hex(hashtextextended('by-hand', 0)) AS name";
    const [{ name: setting }] = (await client.query(name)).rows as [{ name: string }];
    for (const value of ["nonsense", "-1 0 0", "9".repeat(40), "99999 99999999999999 9999999999999999"]) {
      await client.query("SELECT set_config($1, $2, false)", [setting, value]);
      const { rows } = await client.query("SELECT id FROM mdb_queue.claim('by-hand', 'w', 10, 1)");
      expect(rows, value).toHaveLength(10);
      await client.query(
        "UPDATE mdb_queue.messages SET visible_at = enqueued_at, attempt_count = 0 WHERE queue_name = 'by-hand'",
      );
    }
  });
});
