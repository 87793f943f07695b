import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "../../../../../sdk/src/queue/index.ts";
import { type FakeClock, findFakeClockLibrary } from "../../../../../test/support/controller/fake-clock.ts";
import { hasEngine } from "../../../../../test/support/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "../../../../../test/support/engines/queue-database.ts";
import { functions, statements } from "../../../../../test/support/engines/queue-statements.ts";

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
      if (database.clock === undefined) throw new Error("the engine has no clock of its own");
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
    ])("with %s", (way, sql) => {
      const queue = way.replaceAll(" ", "-");
      const send = async (delay = 0) => (await idsOf(sql.enqueue, [queue, { n: 1 }, delay]))[0];
      const claim = (worker: string, seconds: number, most = 10) => idsOf(sql.claim, [queue, worker, most, seconds]);
      const ack = (worker: string, ids: unknown[]) => idsOf(sql.ack, [queue, worker, ids]);

      it("end claims and delays early by no more than a step forward, each message still one worker's", async () => {
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

      it("make what is there wait by no more than a step back, and nothing that comes after it", async () => {
        clock.step(hourS);
        const [held, ready] = [await send(), await send()];
        expect(await claim("before", 30, 1)).toEqual([held]);
        clock.step(0);
        const fresh = await send();
        expect(await claim("after", 30)).toEqual([fresh]);
        expect(await ack("after", [fresh])).toEqual([fresh]);
        // Whoever works on a message goes on with it.
        expect(await idsOf(sql.extend, [queue, "before", [held], 60])).toEqual([held]);
        expect(await ack("before", [held])).toEqual([held]);
        clock.step(hourS + 1);
        expect(await claim("later", 30)).toEqual([ready]);
        expect(await ack("later", [ready])).toEqual([ready]);
      });
    });

    it("keep a message whose last attempt a step ends", async () => {
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

    it("lose nothing under workers while the clock goes there and back", async () => {
      await database.createQueue("worked", { maxAttempts: 100 });
      clock.step(hourS);
      const pool = database.pool(8);
      const queue = createQueue<{ n: number }>({ pool, queue: "worked" });
      const handled = new Set<string>();
      const sent: string[] = [];
      let isOver = false;
      const worker = queue.work(({ id }) => void handled.add(id), { concurrency: 5 });
      const sending = (async () => {
        for (let n = 0; !isOver; n += 1) {
          // A timeout of the engine goes by the same clock: a statement that it ends is sent again.
          sent.push(...(await queue.enqueue([{ n }]).catch(() => [])));
        }
      })();
      for (const seconds of [0, 2 * hourS, hourS / 2, 2 * hourS]) {
        const before = handled.size;
        await expect.poll(() => handled.size).toBeGreaterThan(before + 20);
        clock.step(seconds);
      }
      isOver = true;
      await sending;
      const left = `SELECT id FROM mdb_queue.messages WHERE queue_name = 'worked'
        UNION ALL SELECT id FROM mdb_queue.dead_messages WHERE queue_name = 'worked'`;
      await expect.poll(async () => (await client.query(left)).rows).toEqual([]);
      expect(sent.filter((id) => !handled.has(id))).toEqual([]);
      await worker.stop();
    });
  },
);
