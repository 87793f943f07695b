import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createQueue } from "@holdfast/sdk/queue/index.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";

const queue = "kills";
const workers = 3;
/** Number of rounds. Each kills every worker, and every third round the engine too: 21 kills of workers, or 60. */
const rounds = process.env["HOLDFAST_TEST_QUEUES"] === "all" ? 20 : 7;

describe.skipIf(!hasEngine("postgresql", "17"))("messages of a queue", () => {
  let database: QueueDatabase;
  let pool: ReturnType<QueueDatabase["pool"]>;
  const children = new Set<ChildProcess>();
  beforeAll(async () => {
    database = await createQueueDatabase();
    pool = database.pool(4);
    await database.createQueue(queue, { visibilityTimeoutSeconds: 1, maxAttempts: 100 });
    await pool.query("CREATE TABLE effects (message bigint, attempt integer, hidden_until timestamptz)");
  });
  afterAll(async () => {
    for (const child of children) await kill(child);
    await database?.remove();
  });

  function start(): ChildProcess {
    const child = spawn(
      process.execPath,
      [join(import.meta.dirname, "..", "..", "testing", "src", "engines", "queue-worker.ts")],
      {
        env: { ...process.env, HOLDFAST_QUEUE: queue, HOLDFAST_POOL: JSON.stringify(database.poolConfig) },
        stdio: "ignore",
      },
    );
    children.add(child);
    child.once("exit", () => children.delete(child));
    return child;
  }

  async function kill(child: ChildProcess): Promise<void> {
    const exited = once(child, "exit");
    if (child.kill("SIGKILL")) await exited;
  }

  const count = async (query: string) =>
    Number((await pool.query<{ n: string }>(`SELECT count(*) AS n FROM ${query}`)).rows[0]?.n);

  it("are each processed, no claim twice, while workers and the engine are killed", async () => {
    for (let n = 0; n < workers; n += 1) start();
    const acceptedIds: string[] = [];
    let isWriting = true;
    const writing = (async () => {
      while (isWriting) {
        const payloads = Array.from({ length: 20 }, (_, n) => ({ n: acceptedIds.length + n }));
        // Without a response the outcome is unknown: those messages may be there or not.
        const ids = await createQueue({ pool, queue })
          .enqueue(payloads)
          .catch(() => []);
        acceptedIds.push(...ids);
        // Time: the rate of the producer.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    })();
    for (let round = 1; round <= rounds; round += 1) {
      const before = await count("effects");
      await expect.poll(() => count("effects")).toBeGreaterThan(before + 20);
      for (const victim of children) await kill(victim);
      if (round % 3 === 0) {
        await database.machine.stop("SIGKILL");
        await database.machine.start();
        await database.machine.driver.ready(database.machine.instance, database.machine.signal);
      }
      for (let n = 0; n < workers; n += 1) start();
    }
    isWriting = false;
    await writing;
    await expect.poll(() => count("mdb_queue.messages")).toBe(0);
    expect(acceptedIds.length).toBeGreaterThan(rounds * 20);
    expect(await count("mdb_queue.dead_messages")).toBe(0);
    const { rows } = await pool.query<{ message: string }>("SELECT DISTINCT message FROM effects");
    const handled = new Set(rows.map(({ message }) => message));
    expect(acceptedIds.filter((id) => !handled.has(id))).toEqual([]);
    // A claim belongs to one worker: no attempt was processed twice.
    expect(await count("(SELECT 1 FROM effects GROUP BY message, attempt HAVING count(*) > 1) AS twice")).toBe(0);
    // A killed worker's messages were not handed out again early: a claim hides for a second from its start.
    const early = `effects a JOIN effects b ON b.message = a.message AND b.attempt = a.attempt + 1
      WHERE b.hidden_until - interval '1 s' < a.hidden_until`;
    expect(await count(early)).toBe(0);
    expect(await count("effects WHERE attempt > 1")).toBeGreaterThan(0);
  });

  it("are claimed by one of many at a time", async () => {
    await database.createQueue("crowd");
    const sent = await createQueue({ pool, queue: "crowd" }).enqueue(Array.from({ length: 3000 }, (_, n) => ({ n })));
    const crowd = database.pool(12);
    const claims = await Promise.all(
      Array.from({ length: 12 }, async (_, claimer) => {
        const ids: string[] = [];
        for (let round = 0; ; round += 1) {
          // Half of them by the users' own statement.
          const claim =
            claimer % 2 === 0
              ? "SELECT id FROM mdb_queue.claim('crowd', $1, 7)"
              : `WITH taken AS MATERIALIZED (SELECT id FROM mdb_queue.messages WHERE queue_name = 'crowd' AND visible_at <= now()
                   AND attempt_count < max_attempts ORDER BY id LIMIT 7 FOR UPDATE SKIP LOCKED)
                 UPDATE mdb_queue.messages m SET visible_at = now() + interval '1 h', attempt_count = attempt_count + 1, claimed_by = $1
                 FROM taken WHERE m.id = taken.id RETURNING m.id`;
          const { rows } = await crowd.query<{ id: string }>(claim, [`${claimer}-${round}`]);
          expect(rows.length).toBeLessThanOrEqual(7);
          if (rows.length === 0) return ids;
          ids.push(...rows.map(({ id }) => id));
        }
      }),
    );
    expect(claims.flat().toSorted()).toEqual(sent.toSorted());
  });
});
