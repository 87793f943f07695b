import fc from "fast-check";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { functions, statements } from "@holdfast/testing/engines/queue-statements.ts";

const ways = { statements, functions };
type Way = keyof typeof ways;

/** A message of the reference model: a queue with visibility timeouts and dead letters, as in SQS. Time is in hours. */
interface Reference {
  readonly id: number;
  readonly value: number;
  visibleAt: number;
  attempts: number;
  maxAttempts: number;
  claim: string | null;
  error: string | null;
  isDead: boolean;
}

interface Model {
  now: number;
  claims: number;
  readonly messages: Reference[];
}

interface Real {
  readonly client: pg.Client;
  readonly queue: string;
}

const maxAttempts = 3;
/** Maximum visibility timeout of a claim, and maximum delay, in hours. */
const hours = 2;

const isClaimable = (model: Model) => (message: Reference) =>
  !message.isDead && message.visibleAt <= model.now && message.attempts < message.maxAttempts;

function moveToDead(model: Model): void {
  for (const message of model.messages)
    if (message.attempts >= message.maxAttempts && message.visibleAt <= model.now) message.isDead = true;
}

async function idsOf({ client }: Real, statement: string, values: unknown[]): Promise<number[]> {
  return (await client.query<{ id: string }>(statement, values)).rows.map(({ id }) => Number(id));
}

type Command = fc.AsyncCommand<Model, Real>;

const enqueue = (way: Way, value: number, delay: number): Command => ({
  check: () => true,
  toString: () => `enqueue ${value} after ${delay} h by ${way}`,
  async run(model, real) {
    const [id = 0] = await idsOf(real, ways[way].enqueue, [real.queue, { value }, delay * 3600]);
    expect(model.messages.every((message) => message.id < id)).toBe(true);
    const visibleAt = model.now + delay;
    model.messages.push({ id, value, visibleAt, attempts: 0, maxAttempts, claim: null, error: null, isDead: false });
  },
});

const claim = (way: Way, most: number): Command => ({
  check: () => true,
  toString: () => `claim ${most} by ${way}`,
  async run(model, real) {
    if (way === "functions") moveToDead(model);
    model.claims += 1;
    const worker = `worker-${model.claims}`;
    const claimed = await idsOf(real, ways[way].claim, [real.queue, worker, most, hours * 3600]);
    const ready = model.messages.filter(isClaimable(model));
    if (way === "statements") expect(claimed).toEqual(ready.slice(0, most).map(({ id }) => id));
    // The function may choose other messages, but the same number, and each of them is ready.
    expect(claimed).toHaveLength(Math.min(most, ready.length));
    expect(claimed).toEqual(claimed.toSorted((a, b) => a - b));
    for (const id of claimed) {
      const message = ready.find((each) => each.id === id);
      if (message === undefined) throw new Error(`message ${id} was not to be claimed`);
      Object.assign(message, { claim: worker, attempts: message.attempts + 1, visibleAt: model.now + hours });
    }
  },
});

/** Messages are referred to by position, claims by age: the newest claim, or one that may have expired. */
const settle = (
  what: "ack" | "nack" | "extend",
  way: Way,
  positions: readonly number[],
  age: number,
  delay: number,
): Command => ({
  check: (model) => model.messages.length > 0,
  toString: () => `${what} ${positions.join()} of the claim ${age} before, ${delay} h, by ${way}`,
  async run(model, real) {
    const worker = `worker-${model.claims - age}`;
    const ids = [...new Set(positions.map((position) => model.messages[position % model.messages.length]?.id ?? 0))];
    const values = { ack: [], nack: [delay * 3600, `error ${delay}`], extend: [delay * 3600] }[what];
    const done = await idsOf(real, ways[way][what], [real.queue, worker, ids, ...values]);
    const leased = model.messages.filter(({ id, claim: by, isDead }) => ids.includes(id) && by === worker && !isDead);
    expect(done.toSorted((a, b) => a - b)).toEqual(leased.map(({ id }) => id));
    for (const message of leased) {
      if (what === "ack") model.messages.splice(model.messages.indexOf(message), 1);
      else message.visibleAt = model.now + delay;
      if (what === "nack") {
        message.error = `error ${delay}`;
        if (way === "functions") message.claim = null;
      }
    }
  },
});

const pass: Command = {
  check: () => true,
  toString: () => "an hour passes",
  async run(model, real) {
    model.now += 1;
    await real.client.query(
      `UPDATE mdb_queue.messages SET visible_at = visible_at - interval '1 h', enqueued_at = enqueued_at - interval '1 h'
       WHERE queue_name = $1`,
      [real.queue],
    );
  },
};

const sweep: Command = {
  check: () => true,
  toString: () => "sweep",
  async run(model, real) {
    moveToDead(model);
    await real.client.query("SELECT mdb_queue.sweep($1, 1000)", [real.queue]);
  },
};

const redrive: Command = {
  check: () => true,
  toString: () => "redrive",
  async run(model, real) {
    const dead = model.messages.filter(({ isDead }) => isDead);
    const { rows } = await real.client.query<{ n: string }>("SELECT mdb_queue.redrive($1) AS n", [real.queue]);
    expect(rows).toEqual([{ n: String(dead.length) }]);
    for (const message of dead)
      Object.assign(message, { isDead: false, attempts: 0, visibleAt: model.now, claim: null, error: null });
  },
};

/** The queue has exactly the messages of the reference, each in the same state. */
async function expectSame(model: Model, { client, queue }: Real): Promise<void> {
  const { rows } = await client.query(
    `SELECT id::integer, (payload ->> 'value')::integer AS value, attempt_count AS attempts, claimed_by AS claim,
       last_error AS error, false AS "isDead", visible_at <= clock_timestamp() AS visible
     FROM mdb_queue.messages WHERE queue_name = $1
     UNION ALL SELECT id::integer, (payload ->> 'value')::integer, attempt_count, claimed_by, last_error, true, true
     FROM mdb_queue.dead_messages WHERE queue_name = $1 ORDER BY id`,
    [queue],
  );
  expect(rows).toEqual(
    model.messages.map(({ id, value, attempts, claim: by, error, isDead, visibleAt }) => ({
      id,
      value,
      attempts,
      claim: by,
      error,
      isDead,
      visible: isDead || visibleAt <= model.now,
    })),
  );
}

function commandsOf(allowed: readonly Way[]): fc.Arbitrary<Command>[] {
  const way = fc.constantFrom(...allowed);
  const positions = fc.array(fc.nat(20), { minLength: 1, maxLength: 6 });
  const delay = fc.nat(hours);
  return [
    fc.tuple(way, fc.nat(1000), delay).map((args) => enqueue(...args)),
    fc.tuple(way, fc.nat(1000), fc.constant(0)).map((args) => enqueue(...args)),
    fc.tuple(way, fc.integer({ min: 1, max: 5 })).map((args) => claim(...args)),
    fc.tuple(fc.constantFrom("ack", "nack", "extend"), way, positions, fc.nat(2), delay).map((args) => settle(...args)),
    fc.constant(pass),
    fc.constant(sweep),
    fc.constant(redrive),
  ];
}

describe.skipIf(!hasEngine("postgresql", "17"))("a queue behaves as its reference model", () => {
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

  it.each<[string, readonly Way[]]>([
    ["statements of users", ["statements"]],
    ["functions", ["functions"]],
    ["both by turns", ["statements", "functions"]],
  ])("with %s", async (_, allowed) => {
    let number = 0;
    await fc.assert(
      fc.asyncProperty(fc.commands(commandsOf(allowed), { maxCommands: 40 }), async (commands) => {
        number += 1;
        const queue = `model-${allowed.join("-")}-${number}`;
        await database.createQueue(queue, { maxAttempts });
        const model: Model = { now: 0, claims: 0, messages: [] };
        const real = { client, queue };
        await fc.asyncModelRun(() => ({ model, real }), commands);
        await expectSame(model, real);
      }),
      { numRuns: 60 },
    );
  });
});
