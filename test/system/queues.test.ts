import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createNodeClient } from "@holdfast/sdk/node/index.ts";
import { createQueue, Discard } from "@holdfast/sdk/queue/index.ts";
import { dumpEtcd } from "@holdfast/testing/platform/etcd-dump.ts";
import { expectStatus } from "@holdfast/testing/platform/services.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { commandCases } from "./queues/commands.ts";
import { databaseCases } from "./queues/databases.ts";
import { eventCases } from "./queues/events.ts";
import { hostileCases } from "./queues/hostile-callers.ts";
import { limitCases } from "./queues/limits.ts";
import { recordCases } from "./queues/records.ts";
import { createQueuesUnderTest } from "./queues/queues-under-test.ts";

describe("queues of a service", () => {
  const fixture = createQueuesUnderTest();
  const { cli, claim, settle, ack, enqueue, resultOf, connect } = fixture;
  let sql: Client;
  let queues: string;

  beforeAll(async () => {
    await fixture.start();
    queues = fixture.path();
  });
  afterAll(async () => {
    await sql?.end().catch(() => undefined);
    await fixture.remove();
  });

  it("are created by the command, and rejected where they cannot be", async () => {
    const created = await cli("queues", "create", "orders", "jobs", "--visibility-seconds", "20", "--output", "json");
    expect(created).toMatchObject({ code: 0 });
    expect(JSON.parse(created.stdout)).toMatchObject({ name: "jobs", status: "Active", database_name: "defaultdb" });
    const duplicate = await fixture.platform.rest.post(queues, { name: "jobs" });
    expect([duplicate.status, duplicate.json["code"]]).toEqual([409, "queue_exists"]);
    const nowhere = await fixture.platform.rest.post(queues, { name: "other", database_name: "nowhere" });
    expect(nowhere.status).toBe(422);
    expect((await fixture.platform.rest.post(queues, { name: "Jobs!" })).status).toBe(400);
    expect((await fixture.platform.rest.get(`${queues}/none`)).json["code"]).toBe("queue_not_found");
  });

  it("accept messages over REST, once by key, and return them to SQL with every digit", async () => {
    const rawBody = '{"messages":[{"payload":{"n":12345678901234567890.10}},{"payload":{"n":2},"delay_seconds":0}]}';
    const headers = { "content-type": "application/json", "idempotency-key": "first" };
    const send = () =>
      fixture.platform.rest.call<{ task_id: string }>("POST", `${queues}/jobs/messages`, { rawBody, headers });
    const storedResponses = async () =>
      [...(await dumpEtcd(fixture.platform.directory)).keys()].filter((key) => key.includes("/idempotency/"));
    const storedBefore = new Set(await storedResponses());
    const { task_id: taskId } = expectStatus(await send(), 202).json;
    expect((await send()).json.task_id).toBe(taskId);
    expect((await storedResponses()).filter((key) => !storedBefore.has(key))).toEqual([]);
    const { message_ids: ids = [] } = await resultOf(`${queues}/jobs/messages?task_id=${taskId}`);
    expect(ids).toHaveLength(2);
    expect((await resultOf(`/tasks/${taskId}`)).message_ids).toEqual(ids);
    const other = await fixture.platform.rest.post(
      `${queues}/jobs/messages`,
      { messages: [{ payload: {} }] },
      { headers },
    );
    expect([other.status, other.json["code"]]).toEqual([422, "idempotency_key_reused"]);

    sql = await connect();
    const { rows } = await sql.query("SELECT id, payload::text FROM mdb_queue.claim('jobs', 'psql-1', 10, 30)");
    expect(rows.map(({ id }) => Number(id))).toEqual(ids);
    expect(rows[0].payload).toBe('{"n": 12345678901234567890.10}');
    await sql.query("SELECT mdb_queue.ack('jobs', 'psql-1', $1)", [ids]);
    expect((await sql.query("SELECT count(*)::int AS n FROM mdb_queue.messages")).rows).toEqual([{ n: 0 }]);
  });

  it("report all faults of messages, and store nothing of them in the control plane", async () => {
    const path = `${queues}/jobs/messages`;
    const rejected = await fixture.platform.rest.post<{ errors: { field: string }[] }>(path, {
      messages: [
        { payload: [] },
        { payload: { t: "marked-payload\u0000" } },
        { payload: {}, delay_seconds: 43_201 },
        {},
      ],
    });
    expect(rejected.status).toBe(400);
    expect(rejected.json.errors.map(({ field }) => field).toSorted()).toEqual([
      "messages[0].payload",
      "messages[1].payload",
      "messages[2].delay_seconds",
      "messages[3].payload",
    ]);
    const large = { payload: { t: "marked-payload".padEnd(262_144, "x") } };
    const refused = await fixture.platform.rest.post<{ errors: { field: string }[] }>(path, {
      messages: [{ payload: {} }, large, large],
    });
    expect(refused).toMatchObject({ status: 413, json: { code: "payload_too_large" } });
    expect(refused.json.errors.map(({ field }) => field)).toEqual(["messages[1].payload", "messages[2].payload"]);
    // Through the object store, encrypted, and back in several claims.
    const payloads = Array.from({ length: 30 }, (_, n) => ({ n, t: "marked-payload".padEnd(262_000, "x") }));
    await enqueue("jobs", payloads);
    const found: unknown[] = [];
    while (found.length < payloads.length) {
      const claimed = await claim("jobs", { max: 100 });
      expect(claimed.length).toBeGreaterThan(0);
      expect(JSON.stringify(claimed).length).toBeLessThan(5 << 20);
      found.push(...claimed.map(({ payload }) => payload));
      await ack("jobs", claimed);
    }
    expect(found).toEqual(payloads);
    expect(JSON.stringify([...(await dumpEtcd(fixture.platform.directory))])).not.toContain("marked-payload");
    expect(fixture.platform.errorBodies.join()).not.toContain("marked-payload");
  });

  it("give claims receipts that no one else can create", async () => {
    await enqueue("jobs", [{ n: 1 }, { n: 2 }]);
    const key = { "idempotency-key": "claim-1" };
    const [first, second] = await claim("jobs", { max: 2 }, key);
    expect(await claim("jobs", { max: 2 }, key)).toEqual([first, second]);
    expect(await claim("jobs", {})).toEqual([]);
    const forged = await fixture.platform.rest.post(`${queues}/jobs/messages/ack`, {
      messages: [{ receipt: `${first?.receipt}A` }],
    });
    expect(forged.status).toBe(400);
    expect(await settle("jobs", "nack", [{ receipt: first?.receipt, error: "not now" }])).toMatchObject({ lost: [] });
    const [redelivered] = await claim("jobs", {});
    expect(redelivered).toMatchObject({ id: first?.id, attempt_count: 2 });
    expect(
      await settle(
        "jobs",
        "ack",
        [first, second].map((message) => ({ receipt: message?.receipt })),
      ),
    ).toEqual({
      done: [second?.receipt],
      lost: [first?.receipt],
    });
    expect(await settle("jobs", "extend", [{ receipt: redelivered?.receipt }])).toMatchObject({
      done: [redelivered?.receipt],
    });
    expect(await settle("jobs", "ack", [{ receipt: redelivered?.receipt }])).toMatchObject({
      done: [redelivered?.receipt],
    });
  });

  it("wake a waiting claim", async () => {
    const waiting = claim("jobs", { wait_seconds: 20 });
    await enqueue("jobs", [{ woken: true }]);
    const [message] = await waiting;
    expect(message?.payload).toEqual({ woken: true });
    await settle("jobs", "ack", [{ receipt: message?.receipt }]);
  });

  it("move what fails repeatedly to the dead letters, and make it ready again", async () => {
    await cli("queues", "create", "orders", "poisoned", "--max-attempts", "1");
    const [id] = (await resultOf(`/tasks/${await enqueue("poisoned", [{ poison: true }])}`)).message_ids ?? [];
    const [message] = await claim("poisoned", {});
    await settle("poisoned", "nack", [{ receipt: message?.receipt, error: "it is poison" }]);
    expect(await claim("poisoned", {})).toEqual([]);
    const listed = await cli("queues", "dead", "list", "orders", "poisoned", "--output", "json");
    expect(JSON.parse(listed.stdout)).toMatchObject([{ id, last_error: "it is poison", payload: { poison: true } }]);
    const stats = await fixture.platform.rest.post<{ task_id: string }>(`${queues}/poisoned/stats`, {});
    expect(await resultOf(`${queues}/poisoned/stats?task_id=${stats.json.task_id}`)).toMatchObject({
      queue_name: "poisoned",
      ready_messages: 0,
      dead_messages: 1,
      oldest_age_seconds: null,
    });
    expect(await cli("queues", "dead", "redrive", "orders", "poisoned")).toMatchObject({ code: 0 });
    expect(await claim("poisoned", {})).toMatchObject([{ id, attempt_count: 1 }]);
    // A task belongs to exactly one queue.
    const foreign = await fixture.platform.rest.get(`${queues}/jobs/stats?task_id=${stats.json.task_id}`);
    expect(foreign.json["code"]).toBe("task_not_found");
  });

  it("are processed by the SDK's worker over HTTP", async () => {
    await cli("queues", "create", "orders", "worked", "--max-attempts", "2");
    const client = createNodeClient({ dataDirectory: fixture.platform.directory });
    const queue = createQueue<{ n: number }>({ client, service: fixture.orders.service.id, queue: "worked" });
    const ids = await queue.enqueue(Array.from({ length: 150 }, (_, n) => ({ n })));
    expect(new Set(ids).size).toBe(150);
    const done: number[] = [];
    const worker = queue.work(
      ({ payload: { n }, attemptCount }) => {
        if (n === 7) throw new Discard("seven");
        if (n === 8 && attemptCount === 1) throw new Error("not the first time");
        done.push(n);
      },
      { concurrency: 20, backoff: () => 0 },
    );
    await waitUntil("all but one are done", async () => (done.length === 149 ? true : undefined));
    expect(await worker.stop()).toEqual({ acked: 149, nacked: 2, lost: 0 });
    expect(new Set(done).size).toBe(149);
    // Only messages remain that the next sweep moves to the dead letters.
    expect(await claim("worked", {})).toEqual([]);
    const { messages: dead } = (await fixture.platform.rest.get<{ messages: unknown[] }>(`${queues}/worked/dead`)).json;
    expect(dead).toMatchObject([{ payload: { n: 7 }, attempt_count: 1, last_error: "Discard: seven" }]);
    await expect(queue.enqueue([{ n: 0 }], { within: { query: async () => ({ rows: [] }) } })).rejects.toThrow(
      "transaction",
    );
    const nobody = createQueue({ client, service: fixture.orders.service.id, queue: "nobody" });
    await expect(nobody.work(() => undefined).finished).rejects.toMatchObject({ code: "queue_not_found" });
  });

  commandCases(fixture);
  eventCases(fixture);
  databaseCases(fixture);
  recordCases(fixture);
  limitCases(fixture);
  hostileCases(fixture);

  it("are deleted with their messages, and a new one of the name has none", async () => {
    await enqueue("jobs", [{ old: true }]);
    expect((await fixture.platform.rest.delete(`${queues}/jobs`)).json).toMatchObject({ status: "Deprovisioning" });
    await waitUntil(
      "the queue is gone",
      async () => (await fixture.platform.rest.get(`${queues}/jobs`)).status === 404,
    );
    expect((await fixture.platform.rest.post(`${queues}/jobs/messages`, { messages: [{ payload: {} }] })).status).toBe(
      404,
    );
    expect(await cli("queues", "create", "orders", "jobs")).toMatchObject({ code: 0 });
    expect(await claim("jobs", {})).toEqual([]);
  });
});
