import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import type { Session } from "../session.ts";
import { claim } from "./claim.ts";
import { deleteQueue } from "./delete-queue.ts";
import { enqueue } from "./enqueue.ts";
import { listDead, peek } from "./peek.ts";
import { migrate, schemaVersionOf } from "./migrate.ts";
import { QueueRefused } from "./queue-refused.ts";
import { adoptQueue, createQueue, listQueues, updateQueue } from "./stored-queues.ts";
import { runTask } from "./run-task.ts";
import { ack, extend, nack } from "./settle.ts";
import { sample } from "./stats.ts";
import { sweep } from "./queue-maintenance.ts";
import { openTasks, putTask, type QueueTaskKind, readTask } from "./task.ts";

const codeOf = (error: unknown) => (error instanceof QueueRefused ? error.queueCode : error);

describe.skipIf(!hasEngine("postgresql", "17"))("the agent's work on queues", () => {
  let database: QueueDatabase;
  let user: pg.Client;
  const agent = <T>(work: (session: Session) => Promise<T>) => database.asAgent(work);
  const refused = (work: (session: Session) => Promise<unknown>) =>
    agent(work).then((answer) => answer as unknown, codeOf);
  const send = (queue: string, taskId: string, payloads: readonly string[], bodyHash = "hash") =>
    agent((session) =>
      enqueue(session, {
        taskId,
        queue,
        bodyHash,
        messages: payloads.map((payload) => ({ payload, delaySeconds: 0 })),
      }),
    );
  const perform = (queue: string, kind: QueueTaskKind, id: string, input?: object) =>
    agent(async (session) => {
      const request = { id, queue, kind, bodyHash: "", ...(input !== undefined && { input: JSON.stringify(input) }) };
      return runTask(session, await putTask(session, request), AbortSignal.timeout(60_000));
    });
  beforeAll(async () => {
    database = await createQueueDatabase();
    user = await database.connect();
  });
  afterAll(async () => {
    await user?.end();
    await database?.remove();
  });

  it("stores a queue under its id and its name", async () => {
    const request = { id: "q1", name: "registry", visibilityTimeoutSeconds: 5, maxAttempts: 3, dlqEnabled: true };
    const created = await agent((session) => createQueue(session, request));
    expect(created).toMatchObject(request);
    expect(await agent((session) => createQueue(session, request))).toEqual(created);
    expect(await refused((session) => createQueue(session, { ...request, id: "q2" }))).toBe("queue_exists");
    const changed = await agent((session) => updateQueue(session, { id: "q1", maxAttempts: 7 }));
    expect(changed).toMatchObject({ maxAttempts: 7, visibilityTimeoutSeconds: 5 });
    expect(await agent((session) => updateQueue(session, { id: "q2", maxAttempts: 7 }))).toBeUndefined();
    expect(await agent((session) => adoptQueue(session, { name: "registry", id: "q3" }))).toMatchObject({ id: "q3" });
    expect((await agent(listQueues)).map(({ name }) => name)).toContain("registry");
  });

  it("enqueues once for a task, and stores its ids in order and every digit", async () => {
    await database.createQueue("tasks");
    const payloads = ['{"n":12345678901234567890.123456789012345678901234567890}', '{"n":2}', '{"n":1}'];
    const task = await send("tasks", "t1", payloads);
    expect(task).toMatchObject({ state: "completed", kind: "enqueue", queue: "tasks" });
    expect((await send("tasks", "t1", payloads)).result).toEqual(task.result);
    const { message_ids: ids } = JSON.parse(task.result ?? "") as { message_ids: number[] };
    const listed = await agent((session) => peek(session, { queue: "tasks", limit: 10 }));
    expect(listed.map(({ id }) => Number(id))).toEqual(ids);
    expect(listed.map(({ payload }) => payload.replaceAll(" ", ""))).toEqual(payloads);
    const next = await agent((session) => peek(session, { queue: "tasks", limit: 10, afterId: listed[1]?.id }));
    expect(next.map(({ id }) => id)).toEqual([listed[2]?.id]);
    expect(await send("tasks", "t1", payloads, "other").catch(codeOf)).toBe("task_conflict");
    expect(await send("nobody", "t2", payloads).catch(codeOf)).toBe("queue_not_active");
    for (const payload of ["{", '{"a":"\\u0000"}', '{"a":1e999999}', "[]"])
      expect(await send("tasks", "t3", [payload]).catch(codeOf), payload).toBe("payload_not_valid");
    expect(await send("tasks", "t3", [`{"a":"${"x".repeat(262_144)}"}`]).catch(codeOf)).toBe("payload_too_large");
    expect(await agent((session) => readTask(session, { taskId: "t3" }))).toBeUndefined();
  });

  it("enqueues once for concurrent requests with the same task", async () => {
    await database.createQueue("together");
    const tasks = await Promise.all(Array.from({ length: 6 }, () => send("together", "t-together", ["{}", "{}"])));
    expect(new Set(tasks.map(({ result }) => result)).size).toBe(1);
    expect(await agent((session) => peek(session, { queue: "together", limit: 10 }))).toHaveLength(2);
  });

  it("enqueues all or none of a request of several statements, in order and once", async () => {
    await database.createQueue("large");
    const payloads = Array.from({ length: 12 }, (_, n) => `{"n": ${n}, "t": "${"x".repeat(250_000)}"}`);
    const count = async () => (await user.query("SELECT FROM mdb_queue.messages WHERE queue_name = 'large'")).rowCount;
    expect(await send("large", "t-large", [...payloads, "[]"]).catch(codeOf)).toBe("payload_not_valid");
    expect(await send("nobody", "t-large", payloads).catch(codeOf)).toBe("queue_not_active");
    expect(await count()).toBe(0);
    const [task, ...others] = await Promise.all([1, 2, 3].map(() => send("large", "t-large", payloads)));
    expect(others.map(({ result }) => result)).toEqual([task?.result, task?.result]);
    const { message_ids: ids } = JSON.parse(task?.result ?? "") as { message_ids: number[] };
    const { rows } = await user.query(
      "SELECT id, payload::text FROM mdb_queue.messages WHERE queue_name = 'large' ORDER BY id",
    );
    expect(rows.map(({ id }) => Number(id))).toEqual(ids);
    expect(rows.map(({ payload }) => payload)).toEqual(payloads);
    expect(await send("large", "t-large", payloads, "other").catch(codeOf)).toBe("task_conflict");
  });

  it("claims as many messages as fit, and settles only those of the worker", async () => {
    await database.createQueue("claims");
    const large = `{"a":"${"x".repeat(1000)}"}`;
    await send(
      "claims",
      "t4",
      Array.from({ length: 8 }, () => large),
    );
    const task = { id: "c1", bodyHash: "h" };
    const request = { queue: "claims", worker: "w1", max: 8, maxBytes: 4500, task };
    const first = await agent((session) => claim(session, request));
    expect(first).toHaveLength(4);
    expect(first.map(({ attemptCount }) => attemptCount)).toEqual([1, 1, 1, 1]);
    expect(await agent((session) => claim(session, request))).toEqual(first);
    expect(await refused((session) => claim(session, { ...request, task: { id: "c1", bodyHash: "x" } }))).toBe(
      "task_conflict",
    );
    const alone = await agent((session) => claim(session, { queue: "claims", worker: "w2", max: 5, maxBytes: 1 }));
    expect(alone).toHaveLength(1);
    const [one, two, three, four] = first.map(({ id }) => ({
      id,
      worker: "w1",
      delaySeconds: 0,
      visibilitySeconds: 60,
    }));
    const other = { id: alone[0]?.id ?? 0n, worker: "w1", delaySeconds: 0, visibilitySeconds: 60 };
    if (one === undefined || two === undefined || three === undefined || four === undefined) throw new Error("too few");
    expect(await agent((session) => ack(session, "claims", [other, two, one, one]))).toEqual({
      done: [two, one],
      lost: [other, one],
    });
    const failed = { ...three, error: "é".repeat(5000), delaySeconds: 600 };
    const wrong = { ...four, error: "wrong", discard: true };
    expect(await agent((session) => nack(session, "claims", [failed, other, wrong]))).toEqual({
      done: [failed, wrong],
      lost: [other],
    });
    expect(await agent((session) => extend(session, "claims", [four, { ...other, worker: "w2" }]))).toMatchObject({
      done: [{ worker: "w2" }],
      lost: [four],
    });
    expect(await agent((session) => claim(session, request))).toEqual([]);
    const { rows } = await user.query("SELECT last_error FROM mdb_queue.messages WHERE id = $1", [String(three.id)]);
    expect(rows).toEqual([{ last_error: "é".repeat(2048) }]);
    await agent(sweep);
    expect(await agent((session) => listDead(session, { queue: "claims", limit: 10 }))).toMatchObject([
      { id: four.id, lastError: "wrong", attemptCount: 1 },
    ]);
    const stats = await perform("claims", "stats", "s1");
    expect(JSON.parse(stats.result ?? "")).toMatchObject({
      queue_name: "claims",
      ready_messages: 3,
      inflight_messages: 1,
      dead_messages: 1,
      delayed_messages: 1,
    });
    const sampled = await agent(sample);
    expect(sampled.inflightMessages).toBe(1);
    expect(sampled.readyMessages).toBeGreaterThanOrEqual(3);
  });

  it("samples small queues exactly, and estimates large ones once for all queues", async () => {
    const before = await agent(sample);
    for (const name of ["full-1", "full-2", "full-3"]) await database.createQueue(name);
    const fill = (name: string, count: number) =>
      user.query("SELECT mdb_queue.enqueue_many($1, array_agg('{}'::jsonb)) FROM generate_series(1, $2)", [
        name,
        count,
      ]);
    await fill("full-1", 3000);
    await fill("full-2", 3000);
    expect((await agent(sample)).readyMessages).toBe(before.readyMessages + 6000);
    await fill("full-3", 9000);
    await fill("full-1", 9000);
    await database.asPlatform((session) => session.rows("VACUUM ANALYZE mdb_queue.messages"));
    const { readyMessages } = await agent(sample);
    expect(readyMessages).toBeGreaterThan(23_000);
    expect(readyMessages).toBeLessThan(26_000);
    await user.query("DELETE FROM mdb_queue.messages WHERE queue_name LIKE 'full-%'");
  });

  it("redrives and purges in tasks, and resumes an interrupted one", async () => {
    await database.createQueue("dead", { maxAttempts: 1 });
    await user.query("SELECT mdb_queue.enqueue_many('dead', array_agg('{}'::jsonb)) FROM generate_series(1, 12000)");
    await user.query("UPDATE mdb_queue.messages SET attempt_count = 1, visible_at = now() WHERE queue_name = 'dead'");
    while ((await agent(sweep)).hasMore);
    const ids = (await agent((session) => listDead(session, { queue: "dead", limit: 2 }))).map(({ id }) => String(id));
    expect((await perform("dead", "redrive", "r1", { ids })).result).toBe('{"messages": 2}');
    const redriven = await perform("dead", "redrive", "r2");
    expect(redriven).toMatchObject({ state: "completed", result: '{"messages": 11998}' });
    expect((await perform("dead", "redrive", "r2")).result).toBe('{"messages": 11998}');
    await agent((session) => putTask(session, { id: "p1", queue: "dead", kind: "purge", bodyHash: "" }));
    const [open] = await agent(openTasks);
    expect(open).toMatchObject({ id: "p1", state: "pending" });
    expect((await perform("dead", "purge", "p1")).result).toBe('{"messages": 12000}');
    expect(await agent(openTasks)).toEqual([]);
    expect((await perform("dead", "purge_dead", "p2")).result).toBe('{"messages": 0}');
  });

  it("deletes a queue with its messages, and frees the name after open transactions", async () => {
    const request = { id: "d1", name: "doomed", visibilityTimeoutSeconds: 5, maxAttempts: 3, dlqEnabled: true };
    await agent((session) => createQueue(session, request));
    await user.query("SELECT mdb_queue.enqueue_many('doomed', array_agg('{}'::jsonb)) FROM generate_series(1, 25000)");
    const late = await database.connect();
    const old = await database.connect();
    await late.query("BEGIN");
    await late.query("SELECT mdb_queue.enqueue('doomed', '{}')");
    await old.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await old.query("SELECT 1");
    expect(await agent((session) => deleteQueue(session, { id: "d1", steps: 1 }))).toEqual({
      state: "purging",
      purged: 10_000,
    });
    await expect(user.query("SELECT mdb_queue.enqueue('doomed', '{}')")).rejects.toThrow("not active");
    expect(await agent((session) => deleteQueue(session, { id: "d1" }))).toEqual({ state: "waiting", purged: 15_000 });
    expect(await refused((session) => createQueue(session, { ...request, id: "d2" }))).toBe("queue_exists");
    await late.query("COMMIT");
    expect(await agent((session) => deleteQueue(session, { id: "d1" }))).toEqual({ state: "deleted", purged: 1 });
    expect(await agent((session) => deleteQueue(session, { id: "d1" }))).toEqual({ state: "deleted", purged: 0 });
    await agent((session) => createQueue(session, { ...request, id: "d2" }));
    // The open transaction's snapshot still contains the deleted queue.
    await expect(old.query("SELECT mdb_queue.enqueue('doomed', '{}')")).rejects.toMatchObject({ code: "40001" });
    await old.end();
    await late.end();
    expect(await agent((session) => peek(session, { queue: "doomed", limit: 1 }))).toEqual([]);
    expect(await agent((session) => deleteQueue(session, { id: "d1" }))).toEqual({ state: "deleted", purged: 0 });
    await user.query("BEGIN ISOLATION LEVEL REPEATABLE READ");
    await user.query("SELECT mdb_queue.enqueue('doomed', '{}')");
    await user.query("COMMIT");
  });

  it("removes tasks after a day and dead messages after two weeks", async () => {
    await database.createQueue("aged");
    await send("aged", "t-aged", ["{}"]);
    await database.asPlatform((session) =>
      session.rows(`INSERT INTO mdb_queue.dead_messages SELECT id, queue_name, payload, 1, now(), 1, NULL, now(), NULL, now() - interval '15 days'
        FROM mdb_queue.messages WHERE queue_name = 'aged';
        UPDATE mdb_queue.tasks SET created_at = now() - interval '25 hours' WHERE id = 't-aged'`),
    );
    expect(await agent((session) => readTask(session, { taskId: "t-aged" }))).toBeUndefined();
    expect(await agent(sweep)).toEqual({ swept: 2, hasMore: false });
  });

  it("finds the queues and no tasks in a copy", async () => {
    await database.createQueue("copied");
    await send("copied", "t-copied", ["{}"]);
    const again = await database.asPlatform((session) => migrate(session, { serviceId: "service" }));
    expect(again).toEqual({ from: 5, to: 5, copied: false });
    const idOf = async () => (await agent(listQueues)).find(({ name }) => name === "copied")?.id;
    const before = await idOf();
    const copy = await database.asPlatform((session) => migrate(session, { serviceId: "fork" }));
    expect(await idOf()).not.toBe(before);
    expect(copy).toEqual({ from: 5, to: 5, copied: true });
    expect(await agent((session) => readTask(session, { taskId: "t-copied" }))).toBeUndefined();
    expect(await agent((session) => peek(session, { queue: "copied", limit: 9 }))).toHaveLength(1);
    expect(await database.asPlatform(schemaVersionOf)).toBe(5);
  });

  it("migrates the first schema version to the current one with its contents", async () => {
    await database.createQueue("older");
    await send("older", "t-older", ["{}"]);
    await database.asPlatform((session) =>
      session.rows(`DROP FUNCTION mdb_queue.begin_look, mdb_queue.end_look; UPDATE mdb_queue.meta SET version = 1;
        REVOKE SELECT ON SEQUENCE mdb_queue.messages_id_seq FROM holdfast_queue`),
    );
    await database.asPlatform(async (session) => {
      const { serviceId } = (
        await session.rows<{ serviceId: string }>('SELECT service_id AS "serviceId" FROM mdb_queue.meta')
      )[0] ?? { serviceId: "" };
      expect(await migrate(session, { serviceId })).toEqual({ from: 1, to: 5, copied: false });
    });
    const { rows } = await user.query("SELECT payload FROM mdb_queue.claim('older', 'w', 5)");
    expect(rows).toEqual([{ payload: {} }]);
  });
});
