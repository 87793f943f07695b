import { create } from "@bufbuild/protobuf";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { createPostgresqlDriver } from "./driver.ts";
import { redactStrings } from "./query-stats.ts";
import { withSession } from "./session.ts";

const password = "a password";
const secret = "planted-8f31c0de";

for (const version of ["17", "18"]) {
  describe.skipIf(!hasEngine("postgresql", version))(`queries of postgresql ${version}`, () => {
    let machine: EngineMachine;

    beforeAll(async () => {
      const verifier = scramVerifier(password);
      machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
        users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
      });
      await machine.bringUp();
    });
    afterAll(() => machine?.remove());

    const connect = () => connectPostgresql(machine, { user: "app_user", password });
    const read = async (order: "calls" | "rows" | "total_time" | "mean_time" = "calls") => {
      const result = await machine.driver.queryStats?.read(machine.instance, { limit: 500, order }, machine.signal);
      if (result === undefined) throw new Error("the driver has no statistics");
      return result;
    };

    test("reports calls, rows and times of users' queries in all databases, none of the platform", async () => {
      const client = await connect();
      await client.query("CREATE TABLE counted (id int)");
      await client.query("INSERT INTO counted SELECT generate_series(1, 100)");
      for (let index = 0; index < 7; index += 1) await client.query("SELECT id FROM counted WHERE id > $1", [90]);
      await client.end();
      const { queries, totalCount, since, collectedAt } = await read();
      const own = queries.find(({ query }) => query.startsWith("SELECT id FROM counted"));
      expect(own).toMatchObject({
        calls: 7,
        rows: 70,
        database: "defaultdb",
        queryId: expect.stringMatching(/^-?\d+$/),
      });
      expect((own?.totalMs ?? 0) / 7).toBeCloseTo(own?.meanMs ?? -1, 6);
      expect(own?.cacheHitRatio).toBeGreaterThan(0.5);
      expect(totalCount).toBe(queries.length);
      expect(since.getTime()).toBeLessThan(collectedAt.getTime());
      expect(queries.some(({ query }) => /holdfast|pg_stat_statements/.test(query))).toBe(false);
      const calls = queries.map((entry) => entry.calls);
      expect(calls).toEqual(calls.toSorted((a, b) => b - a));
    });

    test("contain no literal, however the engine stores the text", async () => {
      const platform = <T>(sql: string) =>
        withSession(machine.instance, machine.signal, (session) => session.rows<T>(sql));
      // Statements inside functions are counted too, from the next session on.
      await platform("ALTER ROLE app_user SET pg_stat_statements.track = 'all'");
      const [client, other] = await Promise.all([connect(), connect()]);
      const texts = [
        `SELECT '${secret}'::text, id FROM counted WHERE id IN (1, 2)`,
        `SELECT E'${secret}' || $$${secret}$$ || U&'${secret}' /* ${secret} */ FROM counted -- ${secret}`,
        `WITH x AS (SELECT '${secret}' AS s) SELECT s FROM x`,
      ];
      await client.query(`CREATE FUNCTION inner_literal() RETURNS bigint LANGUAGE plpgsql AS
        $f$ BEGIN RETURN (SELECT count(*) FROM counted WHERE id::text = '${secret}'); END $f$`);
      for (const text of texts) await client.query(text);
      await client.query("SELECT inner_literal()");
      const counted = (await read()).queries.map(({ query }) => query);
      expect(counted.some((query) => query.includes("WHERE id::text ="))).toBe(true);
      // A prepared statement is parsed once: after a reset the engine has only its original text.
      await client.query(`PREPARE kept AS SELECT '${secret}', id FROM counted`);
      await client.query("EXECUTE kept");
      await client.query("SELECT pg_stat_statements_reset()");
      await client.query("EXECUTE kept");
      // The statement runs until it gets the lock.
      await client.query("SELECT pg_advisory_lock(7)");
      const during = other.query(`SELECT '${secret} during' FROM pg_advisory_xact_lock(7)`);
      await waitUntil("it runs", async () => {
        const running = await machine.driver.sessions?.running(machine.instance, 10, machine.signal);
        return running?.queries.some(({ query }) => query.includes("pg_advisory_xact_lock"));
      });
      await client.query("SELECT pg_stat_statements_reset()");
      await client.query("EXECUTE kept");
      await client.query("SELECT pg_advisory_unlock(7)");
      await during;
      const raw = await platform<{ query: string }>("SELECT query FROM public.pg_stat_statements");
      for (const text of texts) await client.query(text);
      await Promise.all([client.end(), other.end()]);
      await platform("ALTER ROLE app_user RESET pg_stat_statements.track");
      // The engine must have the literal, or this test proves nothing.
      for (const planted of [`SELECT '${secret}', id FROM counted`, `${secret} during`])
        expect(raw.some(({ query }) => query.includes(planted))).toBe(true);
      const { queries } = await read();
      expect(queries.length).toBeGreaterThan(2);
      expect(JSON.stringify(queries)).not.toContain(secret);
    });

    test("restart when a user resets the statistics", async () => {
      const before = await read();
      const client = await connect();
      await client.query("SELECT pg_stat_statements_reset()");
      await client.end();
      const after = await read();
      expect(after.since.getTime()).toBeGreaterThan(before.since.getTime());
      expect(after.totalCount).toBeLessThan(before.totalCount);
    });

    test("create missing objects without running code of users", async () => {
      const { instance, signal } = machine;
      const remove = "DROP EXTENSION pg_stat_statements";
      await withSession(instance, signal, (session) => session.rows(remove), { database: "defaultdb" });
      await withSession(instance, signal, async (session) => {
        await session.rows(remove);
        await session.rows("DROP ROLE holdfast_console");
      });
      const client = await connect();
      await client.query("CREATE TABLE trap (who text)");
      await client.query(`CREATE FUNCTION pg_stat_statements_reset() RETURNS void LANGUAGE sql AS
        $$ INSERT INTO trap VALUES (current_user) $$`);
      await machine.driver.ready(instance, signal);
      expect((await client.query("SELECT * FROM trap")).rows).toEqual([]);
      await client.query("DROP FUNCTION pg_stat_statements_reset()");
      await client.end();
      expect((await read()).queries).toBeDefined();
    });

    test("list active sessions, and end queries or sessions of users only", async () => {
      const { driver, instance, signal } = machine;
      const [busy, waiting, idle] = await Promise.all([connect(), connect(), connect()]);
      await busy.query("BEGIN; LOCK TABLE counted");
      const blocked = waiting.query("SELECT count(*) FROM counted").catch((error: Error) => error.message);
      const running = () => driver.sessions?.running(instance, 10, signal);
      const result = await waitUntil("one waits for the other", async () => {
        const list = await running();
        return list?.queries.some(({ blockedBy }) => blockedBy.length > 0) === true ? list : undefined;
      });
      expect(result.truncated).toBe(false);
      expect(result.queries.map(({ state }) => state).sort()).toEqual(["active", "idle in transaction"]);
      const holder = result.queries.find(({ state }) => state === "idle in transaction");
      const waiter = result.queries.find(({ state }) => state === "active");
      expect(waiter).toMatchObject({ username: "app_user", database: "defaultdb", wait: "Lock: relation" });
      expect(waiter?.blockedBy).toEqual([holder?.session.pid]);
      expect(waiter?.query).toBe("SELECT count(*) FROM counted");
      if (holder === undefined || waiter === undefined) throw new Error("both were there");
      const end = (session: typeof holder.session, terminate: boolean) =>
        driver.sessions?.signal(instance, session, { terminate }, signal);
      // A pid that is used again is another session.
      const later = { ...waiter.session, startedUs: waiter.session.startedUs + 1n };
      expect(await end(later, true)).toEqual({ found: false });
      expect(await end(waiter.session, false)).toEqual({ found: true });
      expect(await blocked).toMatch(/canceling statement due to user request/);
      expect(await end(holder.session, true)).toEqual({ found: true });
      await expect(busy.query("SELECT 1")).rejects.toThrow();
      expect((await idle.query("SELECT 1 AS one")).rows).toEqual([{ one: 1 }]);
      const platformSession = await withSession(instance, signal, async (session) => {
        const [row] = await session.rows<{ pid: number; us: string }>(
          "SELECT pid, (extract(epoch FROM backend_start) * 1000000)::bigint AS us FROM pg_stat_activity WHERE pid = pg_backend_pid()",
        );
        return end({ pid: row?.pid ?? 0, startedUs: BigInt(row?.us ?? 0) }, true);
      });
      expect(platformSession).toEqual({ found: false });
      await Promise.allSettled([busy.end(), waiting.end(), idle.end()]);
    });
  });
}

test.each([
  ["SELECT 'secret', x FROM t", "SELECT $1, x FROM t"],
  ["SELECT $1, 'it''s secret', $2", "SELECT $1, $3, $2"],
  [String.raw`SELECT E'se\'cret' || e'x'`, "SELECT $1 || $2"],
  ["SELECT $$secret$$, $tag$ $$ secret $tag$", "SELECT $1, $2"],
  ["SELECT U&'secret', B'101', X'1F', N'secret'", "SELECT $1, $2, $3, $4"],
  ["SELECT a -- secret\n, b /* secret /* nested */ secret */ FROM t", "SELECT a  \n, b   FROM t"],
  [`SELECT "it's a name", "a ""b"" 'c'" FROM t1$x`, `SELECT "it's a name", "a ""b"" 'c'" FROM t1$x`],
  ["SELECT a::varchar(10), 1.5e3, t1.c2 FROM t1", "SELECT a::varchar(10), 1.5e3, t1.c2 FROM t1"],
  ["SELECT date'2020-01-01', notdollar$a$b FROM t", "SELECT date$1, notdollar$a$b FROM t"],
] as const)("%s becomes %s", (sql, text) => {
  expect(redactStrings(sql)).toEqual({ text });
});

test.each([
  [String.raw`SELECT 'it\'s secret'`, /two ways/],
  ["SELECT 'secret", /is not closed/],
  ["SELECT $$secret", /is not closed/],
  ["SELECT /* secret", /is not closed/],
  ['SELECT "secret', /is not closed/],
] as const)("nothing is shown of %s", (sql, reason) => {
  expect(redactStrings(sql)).toEqual({ withheld: expect.stringMatching(reason) });
});
