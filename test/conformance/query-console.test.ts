import { withSession } from "@holdfast/agent/engines/postgresql/session.ts";
import type { ReadOnlyQuery } from "@holdfast/agent/engines/insight-facets.ts";
import { hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { allowedStatements } from "./query-console/allowed-statements.ts";
import { attacks } from "./query-console/attacks.ts";
import { type ConsoleMachine, consoleVersion, noNames, startConsoleMachine } from "./query-console/console-machine.ts";
import { testExtensions } from "./query-console/extension-cases.ts";
import { memoryStatements, testMemoryLimit } from "./query-console/memory-cases.ts";
import { testRoutes } from "./query-console/route-cases.ts";

describe.skipIf(!hasEngine("postgresql", consoleVersion))("the query console", () => {
  let subject: ConsoleMachine;
  let owner: Client;

  beforeAll(async () => {
    subject = await startConsoleMachine();
    owner = subject.owner;
  });
  afterAll(() => subject?.remove());

  const execute = (sql: string, change?: Partial<ReadOnlyQuery>) => subject.execute(sql, change);
  const resultOf = (sql: string, change?: Partial<ReadOnlyQuery>) => subject.resultOf(sql, change);
  const traces = () => subject.traces();

  // The engine runs all of them in query-console-matrix.long.test.ts.
  test(`admits ${allowedStatements.length} statements, and runs every tenth of them`, async () => {
    expect(allowedStatements.length).toBeGreaterThanOrEqual(100);
    const refused: string[] = [];
    for (const [index, sql] of allowedStatements.entries()) {
      const verdict = await subject.guard.check(sql);
      if ("refused" in verdict) refused.push(`${sql}: ${verdict.refused}`);
      const response = index % 10 === 0 ? await execute(sql) : undefined;
      if (response !== undefined && "refusal" in response) refused.push(`${sql}: ${response.refusal.message}`);
    }
    expect(refused).toEqual([]);
  });

  // All that the guard admits reach the engine in query-console-matrix.long.test.ts, every tenth of them here.
  test(`rejects ${attacks.length} attacks, and none leaves a trace`, async () => {
    expect(attacks.length).toBeGreaterThanOrEqual(300);
    const before = await traces();
    const passed: string[] = [];
    const admitted: string[] = [];
    for (const sql of attacks) if (!("refused" in (await subject.guard.check(sql)))) admitted.push(sql);
    for (const [index, sql] of admitted.entries())
      if (index % 10 === 0 && !("refusal" in (await execute(sql)))) passed.push(sql.slice(0, 200));
    expect(passed).toEqual([]);
    expect(await traces()).toEqual(before);
  });

  test("executes no writing statement even without the guard", async () => {
    const before = await traces();
    const limits = { rowsMax: 10, bytesMax: 10_000, timeoutMs: 5_000 };
    const raw = (sql: string) => subject.run({ database: "defaultdb", sql, ...noNames, ...limits });
    for (const sql of ["SELECT harm()", "SELECT nextval('public.orders_id_seq')", "SELECT public.harm()"])
      expect(await raw(sql)).toHaveProperty("refusal");
    expect(await traces()).toEqual(before);
    const inside = { database: "holdfast", sql: "SELECT 1", ...noNames, ...limits };
    expect(await subject.run(inside)).toHaveProperty("refusal");
  });

  test("returns values without losing a digit", async () => {
    const { columns, rows } =
      await resultOf(`SELECT 1 AS small, 9007199254740993 AS large, 0.10::numeric AS exact, 1.5::float8,
      'NaN'::float8, true, NULL, '\\xdeadbeef'::bytea, '2026-01-02 03:04:05.678+02'::timestamptz,
      '2026-01-02 03:04:05'::timestamp, '2026-01-02'::date, 'infinity'::timestamptz, '{1,2}'::int[], '{"a": 1}'::jsonb`);
    expect(columns.slice(0, 3)).toEqual(["small", "large", "exact"]);
    const [row = []] = rows;
    expect(row.slice(0, 8)).toEqual([1, "9007199254740993", "0.10", 1.5, "NaN", true, null, "\\xdeadbeef"]);
    expect(row.slice(8)).toEqual([
      "2026-01-02T01:04:05.678Z",
      "2026-01-02T03:04:05",
      "2026-01-02",
      "infinity",
      "{1,2}",
      '{"a": 1}',
    ]);
  });

  test("limits rows and bytes, ends long statements, and returns no response that is too large", async () => {
    const many = await resultOf("SELECT n FROM generate_series(1, 1001) AS n");
    expect([many.rowCount, many.rows.length, many.truncated]).toEqual([1_000, 1_000, true]);
    expect((await resultOf("SELECT n FROM generate_series(1, 1000) AS n")).truncated).toBe(false);
    const wide = await resultOf("SELECT repeat('x', 1000) FROM generate_series(1, 100)", { bytesMax: 10_000 });
    expect([wide.rowCount, wide.truncated]).toEqual([9, true]);
    // Pages of a hundred rows, each far over the limit: bytea is printed as hex, two letters a byte.
    const long = await resultOf("SELECT n, repeat('x', 1000000) FROM generate_series(1, 1000) AS n");
    expect([long.rowCount, long.rows.at(-1)?.[0], long.truncated]).toEqual([8, 8, true]);
    const bytes = await resultOf("SELECT convert_to(repeat('x', 1000000), 'UTF8') FROM generate_series(1, 1000)");
    expect([bytes.rowCount, bytes.truncated]).toEqual([4, true]);
    const uneven = await resultOf(
      "SELECT repeat('x', CASE WHEN n < 3 THEN 10 ELSE 20000000 END) FROM generate_series(1, 9) AS n",
    );
    expect([uneven.rowCount, uneven.truncated]).toEqual([2, true]);
    const slow = await execute("SELECT count(*) FROM generate_series(1, 1000000000)", { timeoutMs: 300 });
    expect(slow).toMatchObject({ refusal: { message: expect.stringMatching(/statement timeout/) } });
    const huge = await execute("SELECT repeat('x', 10000000)", { bytesMax: 10_000 });
    expect(huge).toMatchObject({ refusal: { message: expect.stringMatching(/too large/) } });
  });

  testMemoryLimit(() => subject, memoryStatements.slice(0, 2));

  test("a user's session fails at half of the machine's memory, and the engine continues", async () => {
    const started = async () => (await owner.query("SELECT pg_postmaster_start_time()::text AS at")).rows[0].at;
    const before = await started();
    await expect(owner.query("SELECT length(repeat('x', 600000000))")).rejects.toThrow(/^out of memory$/);
    expect((await owner.query("SELECT length(repeat('x', 200000000))")).rows).toEqual([{ length: 200_000_000 }]);
    expect(await started()).toBe(before);
  });

  test("runs four statements at a time, and starts another one as soon as one has ended", async () => {
    const slow = () => execute("SELECT count(*) FROM generate_series(1, 1000000000)", { timeoutMs: 100_000 });
    const four = [slow(), slow(), slow(), slow()];
    const consoleSessions = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = 'holdfast_console'";
    // A session that has not started its statement yet has nothing to cancel.
    const running = `${consoleSessions} AND state = 'active' AND query ~ '^FETCH'`;
    await waitUntil("four run", async () => (await owner.query(running)).rows[0].count === 4);
    await expect(execute("SELECT 1")).rejects.toThrow(/4 console queries are running already/);
    const cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE usename = 'holdfast_console'";
    await expect(owner.query(cancel)).rejects.toThrow("permission denied");
    await withSession(subject.machine.instance, subject.machine.signal, (session) => session.rows(cancel));
    for (const response of await Promise.all(four))
      expect(response).toMatchObject({ refusal: { message: expect.stringMatching(/user request/) } });
    expect((await resultOf("SELECT 1")).rows).toEqual([[1]]);
    // A connection serves one statement.
    await waitUntil("no session remains", async () => (await owner.query(consoleSessions)).rows[0].count === 0);
  });

  test("reports what is rejected, and where", async () => {
    expect(await execute("SELECT 1;\nDELETE FROM orders")).toMatchObject({ refusal: { position: 9 } });
    // Positions refer to the request's text, although the printed form runs: without comments, with qualified names.
    const rejections: readonly (readonly [sql: string, meant: string, message: RegExp])[] = [
      ["SELECT /* a remark */ nope FROM orders", "nope", /^column "nope" does not exist$/],
      ["SELECT 'äöü€😀' AS x, nope FROM orders", "nope", /^column "nope" does not exist$/],
      [
        "select   id\nfrom   customers c join nowhere n on true",
        "nowhere",
        /^relation "public.nowhere" does not exist$/,
      ],
      ["select 1 where   1 = 'x'::text", "=", /^operator does not exist: integer = text/],
      ["EXPLAIN  SELECT   nope FROM orders", "nope", /^column "nope" does not exist$/],
      ["  DESCRIBE   nowhere", "nowhere", /^relation "public.nowhere" does not exist$/],
      ["SELECT 'ä' ,  harm()", "harm", /^function harm\(\) does not exist$/],
      ["SELECT 'ä' ,  pg_sleep(1)", "pg_sleep", /^The function pg_sleep is not among/],
      ["SELECT 'ä' FROM  orders, harmful_view", "harmful_view", /harmful_view calls a function/],
      ["WITH ä AS (DELETE FROM orders RETURNING 1) SELECT 1", "orders", /^DELETE is not allowed/],
      ["SELECT 'ä', ; 1", ";", /^A semicolon/],
      ["SELECT 'ä', FROM WHERE", "FROM", /^syntax error at or near "FROM"$/],
      ["DESCRIBE orders WHERE", "orders", /^syntax error at end of input$/],
    ];
    for (const [sql, meant, message] of rejections) {
      const position = Array.from(sql.slice(0, sql.indexOf(meant))).length + 1;
      expect(await execute(sql), sql).toMatchObject({ refusal: { message: expect.stringMatching(message), position } });
    }
    const none = { message: "division by zero", position: 0 };
    expect(await execute("SELECT 1 / (id - id) FROM orders")).toMatchObject({ refusal: none });
    const message = expect.stringMatching(/^The function public\.harm belongs neither to the engine/);
    expect(await execute("SELECT public.harm()")).toMatchObject({ refusal: { message } });
  });

  testExtensions(() => subject);
  // One statement of each route: query-console-matrix.long.test.ts has all of them.
  testRoutes(
    () => subject,
    ({ statements }) => statements.slice(0, 1),
  );

  test("runs nothing in a database with a user's cast", async () => {
    await owner.query(`CREATE TYPE pair AS (a int); CREATE FUNCTION harm_cast(pair) RETURNS text LANGUAGE sql AS 'SELECT harm()::text';
      CREATE CAST (pair AS text) WITH FUNCTION harm_cast(pair) AS IMPLICIT`);
    expect(await execute("SELECT 1")).toMatchObject({
      refusal: { message: expect.stringMatching(/user-defined cast/) },
    });
    await owner.query("DROP CAST (pair AS text)");
    expect((await resultOf("SELECT 1")).rows).toEqual([[1]]);
  });
});
