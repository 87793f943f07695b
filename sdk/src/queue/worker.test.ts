import { setImmediate as nextTurn } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { ClaimLost, createQueue, Discard, HandlerTimedOut, type Queue } from "./index.ts";

interface Row {
  readonly id: string;
  readonly payload: Job;
  readonly attempt_count: number;
  readonly claimed_by: string | null;
  readonly visible_at: Date;
}

interface Job {
  readonly n: number;
}

describe.skipIf(!hasEngine("postgresql", "17"))("a worker", () => {
  let database: QueueDatabase;
  let pool: ReturnType<QueueDatabase["pool"]>;
  beforeAll(async () => {
    database = await createQueueDatabase();
    pool = database.pool(8);
  });
  afterAll(() => database?.remove());

  const make = async (name: string, settings = {}): Promise<Queue<Job & Record<string, unknown>>> => {
    await database.createQueue(name, settings);
    return createQueue({ pool, queue: name });
  };
  const jobs = (count: number) => Array.from({ length: count }, (_, n) => ({ n }));
  const left = async (name: string) =>
    (await pool.query<Row>("SELECT * FROM mdb_queue.messages WHERE queue_name = $1 ORDER BY id", [name])).rows;

  it("handles each message once beside other workers, and acks all", async () => {
    const queue = await make("many");
    const ids = await queue.enqueue(jobs(2000));
    expect(ids.map(Number)).toEqual(ids.map(Number).toSorted((a, b) => a - b));
    const seen: string[] = [];
    const workers = [1, 2, 3].map(() =>
      queue.work(
        async ({ id, payload }) => {
          seen.push(id);
          // Some handlers are slower: others begin and end before them.
          if (payload.n % 100 === 0) for (let turn = 0; turn < 10; turn += 1) await nextTurn();
        },
        { concurrency: 20, batch: 50 },
      ),
    );
    await expect.poll(() => seen.length).toBeGreaterThanOrEqual(2000);
    const tallies = await Promise.all(workers.map((worker) => worker.stop()));
    expect(new Set(seen)).toEqual(new Set(ids));
    expect(seen).toHaveLength(2000);
    expect(tallies.reduce((sum, { acked }) => sum + acked, 0)).toBe(2000);
    expect(await left("many")).toEqual([]);
  });

  it("gets messages of a transaction only after its commit", async () => {
    const queue = await make("within");
    const client = await pool.connect();
    await client.query("BEGIN");
    await queue.enqueue(jobs(1), { within: client });
    await client.query("ROLLBACK");
    await client.query("BEGIN");
    await queue.enqueue([{ n: 7 }], { within: client });
    expect(await left("within")).toEqual([]);
    await client.query("COMMIT");
    client.release();
    const seen: Job[] = [];
    const worker = queue.work(({ payload }) => seen.push(payload));
    await expect.poll(() => seen).toEqual([{ n: 7 }]);
    expect(await worker.stop()).toEqual({ acked: 1, nacked: 0, lost: 0 });
  });

  it("stops with an error of onError, and returns the message", async () => {
    const queue = await make("thrown", { maxAttempts: 3 });
    await queue.enqueue(jobs(1));
    const worker = queue.work(
      () => {
        throw new Error("handler");
      },
      {
        onError() {
          throw new Error("planted");
        },
      },
    );
    await expect(worker.finished).rejects.toThrow("planted");
    await expect.poll(async () => (await left("thrown"))[0]).toMatchObject({ last_error: "Error: handler" });
  });

  it("retries failed messages with back-off and error, and makes discarded ones dead", async () => {
    const queue = await make("failing", { maxAttempts: 3 });
    const errors: unknown[] = [];
    await queue.enqueue([{ n: 0 }, { n: 1 }]);
    const attempts: number[] = [];
    const worker = queue.work(
      ({ payload, attemptCount }) => {
        if (payload.n === 1) throw new Discard("never");
        attempts.push(attemptCount);
        throw new Error(`attempt ${attemptCount}`);
      },
      { concurrency: 1, backoff: () => 0, onError: (error) => errors.push(error) },
    );
    await expect.poll(() => attempts).toEqual([1, 2, 3]);
    const dead = () =>
      pool.query(
        "SELECT last_error, attempt_count FROM mdb_queue.dead_messages WHERE queue_name = 'failing' ORDER BY id",
      );
    await expect
      .poll(async () => (await dead()).rows)
      .toEqual([
        { last_error: "Error: attempt 3", attempt_count: 3 },
        { last_error: "Discard: never", attempt_count: 1 },
      ]);
    expect(await worker.stop()).toEqual({ acked: 0, nacked: 4, lost: 0 });
    expect(errors).toHaveLength(4);
  });

  it("returns a message without the error's text where the database's encoding lacks a character", async () => {
    await database.createDatabase("latin", "LATIN1");
    await database.createQueue("latin", {}, "latin");
    const latin = database.pool(2, "latin");
    await latin.query(`CREATE VIEW results AS
      SELECT payload->>'n' AS n, last_error, attempt_count < max_attempts AS again FROM mdb_queue.messages
      UNION ALL SELECT payload->>'n', last_error, false FROM mdb_queue.dead_messages`);
    const queue = createQueue<Job & Record<string, unknown>>({ pool: latin, queue: "latin" });
    await queue.enqueue([{ n: 0 }, { n: 1 }]);
    const worker = queue.work(({ payload }) => {
      if (payload.n === 0) throw new Error("no 🙂");
      throw new Discard("never 🙂");
    });
    await expect.poll(() => worker.tally).toEqual({ acked: 0, nacked: 2, lost: 0 });
    await worker.stop();
    const { rows } = await latin.query("SELECT n, last_error, again FROM results ORDER BY n");
    expect(rows).toEqual([
      { n: "0", last_error: null, again: true },
      { n: "1", last_error: null, again: false },
    ]);
  });

  it.each([{ concurrency: 2.5 }, { batch: 0 }, { batch: 1.5 }, { timeoutSeconds: 3e9 }, { visibilitySeconds: 0 }])(
    "refuses options out of range: %o",
    (options) => {
      expect(() => createQueue({ pool, queue: "refused" }).work(() => undefined, options)).toThrow(RangeError);
    },
  );

  it("extends claims, and aborts the handler of a lost one", async () => {
    const queue = await make("long", { visibilityTimeoutSeconds: 1 });
    await queue.enqueue([{ n: 0 }, { n: 1 }]);
    const reasons: unknown[] = [];
    const startedAt: number[] = [];
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const worker = queue.work(
      async ({ payload }, { signal }) => {
        startedAt.push(payload.n);
        if (payload.n === 0) return ended;
        await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
        reasons.push(signal.reason);
      },
      { concurrency: 2 },
    );
    await expect.poll(() => startedAt.toSorted()).toEqual([0, 1]);
    const [first, second] = (await left("long")) as [Row, Row];
    await pool.query(
      "UPDATE mdb_queue.messages SET claimed_by = 'thief', visible_at = now() + interval '1 h' WHERE id = $1",
      [second.id],
    );
    await expect.poll(() => reasons).toHaveLength(1);
    expect(reasons[0]).toBeInstanceOf(ClaimLost);
    // The heartbeat extends the claim repeatedly.
    await expect
      .poll(async () => Number((await left("long"))[0]?.visible_at) - Number(first.visible_at))
      .toBeGreaterThan(1500);
    expect(startedAt).toHaveLength(2);
    end();
    await expect.poll(() => worker.tally).toEqual({ acked: 1, nacked: 0, lost: 1 });
    await worker.stop();
    expect((await left("long")).map(({ claimed_by }) => claimed_by)).toEqual(["thief"]);
  });

  it("continues with the next message after a handler's timeout", async () => {
    const queue = await make("endless", { maxAttempts: 1 });
    await queue.enqueue([{ n: 0 }, { n: 1 }]);
    const seen: number[] = [];
    const reasons: unknown[] = [];
    const worker = queue.work(
      ({ payload }, { signal }) => {
        seen.push(payload.n);
        if (payload.n === 1) return;
        signal.addEventListener("abort", () => reasons.push(signal.reason));
        return new Promise(() => {});
      },
      { concurrency: 1, timeoutSeconds: 0.05 },
    );
    await expect.poll(() => seen).toEqual([0, 1]);
    expect(reasons[0]).toBeInstanceOf(HandlerTimedOut);
    expect(await worker.stop()).toEqual({ acked: 1, nacked: 1, lost: 0 });
  });

  it("drains at SIGTERM: finishes running handlers and returns other messages unused", async () => {
    const queue = await make("draining");
    await queue.enqueue(jobs(10));
    const startedAt: number[] = [];
    let end = () => {};
    const ended = new Promise<void>((resolve) => {
      end = resolve;
    });
    const listeners = process.listenerCount("SIGTERM");
    const worker = queue.work(
      ({ payload }) => {
        startedAt.push(payload.n);
        return ended;
      },
      { concurrency: 2, batch: 5 },
    );
    await expect.poll(() => startedAt).toEqual([0, 1]);
    process.emit("SIGTERM");
    end();
    expect(await worker.finished).toMatchObject({ acked: 2, lost: 0 });
    expect(process.listenerCount("SIGTERM")).toBe(listeners);
    const rest = await left("draining");
    expect(rest.map(({ payload, attempt_count, claimed_by }) => [payload.n, attempt_count, claimed_by])).toEqual(
      [2, 3, 4, 5, 6, 7, 8, 9].map((n) => [n, 0, null]),
    );
  });

  it("stops when its queue does not exist", async () => {
    const queue = createQueue({ pool, queue: "nobody" });
    await expect(queue.enqueue([{ n: 1 }])).rejects.toThrow("queue nobody is not active");
    await expect(queue.work(() => undefined).finished).rejects.toThrow("queue nobody is not active");
  });

  it("recovers after the engine was killed, and handles every message", async () => {
    const queue = await make("killed", { visibilityTimeoutSeconds: 2 });
    await queue.enqueue(jobs(3000));
    const seen = new Set<number>();
    const errors: unknown[] = [];
    const worker = queue.work(({ payload }) => void seen.add(payload.n), {
      concurrency: 20,
      onError: (error) => errors.push(error),
    });
    await expect.poll(() => seen.size).toBeGreaterThan(100);
    await database.machine.stop("SIGKILL");
    await database.machine.start();
    await expect.poll(() => seen.size).toBe(3000);
    await expect.poll(async () => (await left("killed")).length).toBe(0);
    const { acked, nacked, lost } = await worker.stop();
    expect(errors.length).toBeGreaterThan(0);
    expect(acked).toBeGreaterThan(2000);
    expect(nacked).toBe(0);
    expect(acked + lost).toBeGreaterThanOrEqual(3000 - 200);
  });
});
