import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "@holdfast/sdk/queue/index.ts";
import { type FakeClock, findFakeClockLibrary } from "@holdfast/testing/controller/fake-clock.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { functions, statements } from "@holdfast/testing/engines/queue-statements.ts";

const hourS = 3_600;
const clockLibrary = findFakeClockLibrary();
const why = clockLibrary === undefined ? " (skipped: libfaketime is not here and apt does not bring it)" : "";

describe.skipIf(!hasEngine("postgresql", "17") || clockLibrary === undefined)(
  `queues whose clock is stepped by an hour${why}`,
  () => {
    let database: QueueDatabase;
    let client: pg.Client;
    let clock: FakeClock;
    beforeAll(async () => {
      database = await createQueueDatabase("17", { clockLibrary });
      if (database.clock === undefined) throw new Error("the engine has no separate clock");
      clock = database.clock;
      client = await database.connect();
    });
    afterAll(async () => {
      await client?.end();
      await database?.remove();
    });

    const idsOf = async (statement: string, values: unknown[]): Promise<number[]> =>
      (await client.query<{ id: string }>(statement, values)).rows.map(({ id }) => Number(id));
    const aheadS = async () =>
      Number((await client.query("SELECT extract(epoch FROM clock_timestamp()) AS at")).rows[0]?.at) -
      Date.now() / 1_000;

    describe.each([
      ["functions", functions],
      ["statements of users", statements],
    ])("with %s", (method, sql) => {
      const queue = method.replaceAll(" ", "-");
      const send = async (delay = 0) => (await idsOf(sql.enqueue, [queue, { n: 1 }, delay]))[0];
      const claim = (worker: string, seconds: number, limit = 10) => idsOf(sql.claim, [queue, worker, limit, seconds]);
      const ack = (worker: string, ids: unknown[]) => idsOf(sql.ack, [queue, worker, ids]);

      it("end claims and delays early by at most a step forward, one worker a message", async () => {
        await database.createQueue(queue);
        clock.step(0);
        const short = await send();
        expect(await claim("short", hourS / 2)).toEqual([short]);
        const long = await send();
        expect(await claim("long", 2 * hourS)).toEqual([long]);
        const [soon, late] = [await send(hourS / 2), await send(2 * hourS)];
        expect(await claim("nobody", 30)).toEqual([]);
        clock.step(hourS);
        expect(await aheadS()).toBeGreaterThan(hourS - 60);
        expect(await claim("second", hourS)).toEqual([short, soon]);
        expect(await ack("short", [short])).toEqual([]);
        expect(await ack("second", [short, soon])).toEqual([short, soon]);
        expect(await ack("long", [long])).toEqual([long]);
        clock.step(2 * hourS + 60);
        expect(await claim("last", 30)).toEqual([late]);
        expect(await ack("last", [late])).toEqual([late]);
      });

      it("delay existing messages by at most a step back, and later ones not at all", async () => {
        clock.step(hourS);
        const [claimed, ready] = [await send(), await send()];
        expect(await claim("before", 30, 1)).toEqual([claimed]);
        clock.step(0);
        const afterStep = await send();
        expect(await claim("after", 30)).toEqual([afterStep]);
        expect(await ack("after", [afterStep])).toEqual([afterStep]);
        // Workers keep their claims.
        expect(await idsOf(sql.extend, [queue, "before", [claimed], 60])).toEqual([claimed]);
        expect(await ack("before", [claimed])).toEqual([claimed]);
        clock.step(hourS + 1);
        expect(await claim("later", 30)).toEqual([ready]);
        expect(await ack("later", [ready])).toEqual([ready]);
      });
    });

    it("move a message to the dead ones if a step ends its last attempt", async () => {
      await database.createQueue("last-attempt", { maxAttempts: 1 });
      clock.step(0);
      const [id] = await idsOf(functions.enqueue, ["last-attempt", { n: 1 }, 0]);
      expect(await idsOf(functions.claim, ["last-attempt", "first", 1, 30])).toEqual([id]);
      clock.step(hourS);
      expect(await idsOf(functions.claim, ["last-attempt", "second", 1, 30])).toEqual([]);
      expect(await idsOf(functions.ack, ["last-attempt", "first", [id]])).toEqual([]);
      await client.query("SELECT mdb_queue.redrive('last-attempt')");
      expect(await idsOf(functions.claim, ["last-attempt", "third", 1, 30])).toEqual([id]);
    });

    it("lose no message while the clock is stepped forward and back under workers", async () => {
      await database.createQueue("worked", { maxAttempts: 100 });
      clock.step(hourS);
      const pool = database.pool(8);
      const queue = createQueue<{ n: number }>({ pool, queue: "worked" });
      const handled = new Set<string>();
      const sent: string[] = [];
      let isFinished = false;
      const worker = queue.work(({ id }) => void handled.add(id), { concurrency: 5 });
      const sending = (async () => {
        for (let n = 0; !isFinished; n += 1) {
          // The engine's timeouts use the same clock: retry a statement that one ends.
          sent.push(...(await queue.enqueue([{ n }]).catch(() => [])));
        }
      })();
      for (const seconds of [0, 2 * hourS, hourS / 2, 2 * hourS]) {
        const before = handled.size;
        await expect.poll(() => handled.size).toBeGreaterThan(before + 20);
        clock.step(seconds);
      }
      isFinished = true;
      await sending;
      const remaining = `SELECT id FROM mdb_queue.messages WHERE queue_name = 'worked'
        UNION ALL SELECT id FROM mdb_queue.dead_messages WHERE queue_name = 'worked'`;
      await expect.poll(async () => (await client.query(remaining)).rows).toEqual([]);
      expect(sent.filter((id) => !handled.has(id))).toEqual([]);
      await worker.stop();
    });
  },
);
