import { readFileSync } from "node:fs";
import { join } from "node:path";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { createQueueDatabase, type QueueDatabase } from "@holdfast/testing/engines/queue-database.ts";
import { functions, statements as raw } from "@holdfast/testing/engines/queue-statements.ts";
import { updateQueue } from "./stored-queues.ts";

const docs = join(import.meta.dirname, "../../../../../docs/how-to/queues.md");
const normalized = (text: string) => text.replaceAll(/\s+/g, " ").replaceAll("( ", "(").replaceAll(" )", ")");

it.each(Object.entries(raw))("the documentation contains the tested statement: %s", (_, statement) => {
  expect(normalized(readFileSync(docs, "utf8"))).toContain(normalized(statement));
});

describe.skipIf(!hasEngine("postgresql", "17"))("messages of queues", () => {
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

  const idsOf = async (statement: string, values: unknown[]): Promise<number[]> =>
    (await client.query<{ id: string }>(statement, values)).rows.map(({ id }) => Number(id));
  const rowOf = async (id: number | undefined) =>
    (
      await client.query("SELECT *, visible_at <= clock_timestamp() AS visible FROM mdb_queue.messages WHERE id = $1", [
        id,
      ])
    ).rows[0];
  /** Makes a message due. */
  const makeDue = (id: number | undefined) =>
    client.query("UPDATE mdb_queue.messages SET visible_at = clock_timestamp() - interval '1 s' WHERE id = $1", [id]);

  describe.each([
    ["statements of users", raw],
    ["functions", functions],
  ])("with %s", (method, sql) => {
    const queue = method.replaceAll(" ", "-");
    beforeAll(() => database.createQueue(queue, { maxAttempts: 2 }));
    const send = async (delay = 0) => (await idsOf(sql.enqueue, [queue, { n: 1 }, delay]))[0];
    const claim = (worker: string, limit = 10) => idsOf(sql.claim, [queue, worker, limit, 30]);

    it("are claimed when visible_at is not in the future, once, in order of id", async () => {
      const ids = [await send(), await send(), await send()];
      const late = await send(600);
      await makeDue(ids[0]);
      expect(await claim("a", 2)).toEqual(ids.slice(0, 2));
      expect(await claim("b")).toEqual([ids[2]]);
      expect(await claim("c")).toEqual([]);
      expect(await rowOf(ids[0])).toMatchObject({ attempt_count: 1, claimed_by: "a", visible: false, max_attempts: 2 });
      await makeDue(late);
      expect(await claim("d")).toEqual([late]);
      expect(await idsOf(sql.ack, [queue, "a", ids])).toEqual(ids.slice(0, 2));
      expect(await idsOf(sql.ack, [queue, "b", ids])).toEqual([ids[2]]);
      expect(await idsOf(sql.ack, [queue, "d", [late]])).toEqual([late]);
    });

    it("are acked, nacked and extended only by their worker", async () => {
      const id = await send();
      await claim("first");
      await makeDue(id);
      expect(await claim("second")).toEqual([id]);
      expect(await idsOf(sql.ack, [queue, "first", [id]])).toEqual([]);
      expect(await idsOf(sql.nack, [queue, "first", [id], 0, "no"])).toEqual([]);
      expect(await idsOf(sql.extend, [queue, "first", [id], 60])).toEqual([]);
      expect(await idsOf(sql.extend, [queue, "second", [id], 3600])).toEqual([id]);
      expect((await rowOf(id)).visible_at - Date.now()).toBeGreaterThan(3_000_000);
      expect(await idsOf(sql.ack, [queue, "second", [id]])).toEqual([id]);
      expect(await rowOf(id)).toBeUndefined();
    });

    it("return after a nack with its error, and die after their last attempt", async () => {
      const id = await send();
      await claim("one");
      expect(await idsOf(sql.nack, [queue, "one", [id], 600, "broken"])).toEqual([id]);
      expect(await rowOf(id)).toMatchObject({ attempt_count: 1, last_error: "broken", visible: false });
      await makeDue(id);
      expect(await claim("two")).toEqual([id]);
      // During its last attempt no sweep moves it, and an ack would still count.
      await idsOf(functions.claim, [queue, "x", 10, 30]);
      expect(await rowOf(id)).toMatchObject({ attempt_count: 2, claimed_by: "two" });
      await makeDue(id);
      expect(await claim("three")).toEqual([]);
      await idsOf(functions.claim, [queue, "x", 10, 30]);
      expect(await rowOf(id)).toBeUndefined();
      const dead = await client.query("SELECT * FROM mdb_queue.dead_messages WHERE id = $1", [id]);
      expect(dead.rows[0]).toMatchObject({
        queue_name: queue,
        payload: { n: 1 },
        attempt_count: 2,
        last_error: "broken",
      });
      const back = await client.query("SELECT mdb_queue.redrive($1) AS n", [queue]);
      expect(back.rows).toEqual([{ n: "1" }]);
      expect(await claim("four")).toEqual([id]);
      expect(await rowOf(id)).toMatchObject({ attempt_count: 1, payload: { n: 1 } });
      expect(await idsOf(sql.ack, [queue, "four", [id]])).toEqual([id]);
    });
  });

  it("of a queue without dead letters are deleted, by the setting when they were enqueued", async () => {
    await database.createQueue("short", { maxAttempts: 1, dlqEnabled: true });
    const sent: number[] = [];
    for (const dlqEnabled of [false, true, false]) {
      sent.push(...(await idsOf(functions.enqueue, ["short", {}, 0])));
      await database.asAgent((session) => updateQueue(session, { id: "id-short", dlqEnabled }));
    }
    sent.push(...(await idsOf(functions.enqueue, ["short", {}, 0])));
    expect(await idsOf(functions.claim, ["short", "w", 10, 30])).toEqual(sent);
    for (const id of sent) await makeDue(id);
    expect((await client.query("SELECT mdb_queue.sweep('short') AS n")).rows).toEqual([{ n: 4 }]);
    expect(await idsOf("SELECT id FROM mdb_queue.dead_messages WHERE queue_name = $1 ORDER BY id", ["short"])).toEqual([
      sent[0],
      sent[2],
    ]);
  });

  it("are refused for names without an active queue, and payloads that are not objects or too large", async () => {
    await database.createQueue("strict");
    const insert = (queue: string, payload: string) =>
      client.query("INSERT INTO mdb_queue.messages (queue_name, payload) VALUES ($1, $2)", [queue, payload]).then(
        () => "taken",
        ({ code }: { code: string }) => code,
      );
    const ofBytes = (bytes: number) => `{"a":"${"x".repeat(bytes - 8)}"}`;
    expect(await insert("nobody", "{}")).toBe("HQ001");
    expect(await insert("'; DROP TABLE mdb_queue.messages; --", "{}")).toBe("HQ001");
    for (const payload of ["[]", "1", "null", '"text"']) expect(await insert("strict", payload), payload).toBe("HQ002");
    expect(await insert("strict", ofBytes(262_144))).toBe("taken");
    expect(await insert("strict", ofBytes(262_145))).toBe("HQ003");
    // With many commas and colons it prints as more than the limit; spaces in strings count.
    const list = `{"a":[${"1,".repeat(131_000)}1],"b": "${" ".repeat(100)} \\" , "}`;
    expect(list.length).toBeLessThan(262_144);
    expect(await insert("strict", list)).toBe("taken");
    expect(await insert("strict", `{"a":[${"1,".repeat(131_100)}1]}`)).toBe("HQ003");
    expect(await insert("strict", `{"a": "${"\\u0001".repeat(60_000)}"}`)).toBe("HQ003");
    const { rows } = await client.query("SELECT max_attempts FROM mdb_queue.messages WHERE queue_name = 'strict'");
    expect(rows).toEqual([{ max_attempts: 5 }, { max_attempts: 5 }]);
    await expect(
      client.query("UPDATE mdb_queue.messages SET queue_name = 'nobody' WHERE queue_name = 'strict'"),
    ).rejects.toThrow("queue nobody is not active");
    await expect(
      client.query("UPDATE mdb_queue.messages SET payload = '[]' WHERE queue_name = 'strict'"),
    ).rejects.toThrow("no JSON object");
  });
});
