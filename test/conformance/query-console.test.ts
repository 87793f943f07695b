import { create } from "@bufbuild/protobuf";
import { createPostgresqlDriver } from "@holdfast/agent/engines/postgresql/driver.ts";
import { withSession } from "@holdfast/agent/engines/postgresql/session.ts";
import type { ReadOnlyResult, ReadOnlyQuery } from "@holdfast/agent/engines/insight-facets.ts";
import { requestPosition } from "@holdfast/controller/insight/query-console/statement-positions.ts";
import { postgresql } from "@holdfast/controller/insight/query-console/postgresql/console.ts";
import { createGuardThread } from "@holdfast/controller/insight/query-console/guard-thread.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import type { Client } from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { connectPostgresql, scramVerifier } from "@holdfast/testing/engines/engine-clients.ts";
import { createEngineMachine, type EngineMachine, hasEngine } from "@holdfast/testing/engines/engine-machine.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import { attacks } from "./query-console/attacks.ts";
import { harmlessObjects, besideStatements, routeFixture, routes } from "./query-console/user-code-routes.ts";
import { extensionAttacks, extensionStatements } from "./query-console/extensions.ts";
import { allowedStatements } from "./query-console/allowed-statements.ts";

const version = "17";
const password = "a password";

/** Traps that an owner of the database can set; each leaves a trace in harm_done, or in the engine's own counters. */
const schema = `
  CREATE TABLE customers (id int PRIMARY KEY, name text);
  CREATE TABLE orders (id serial PRIMARY KEY, customer_id int, status text, amount numeric, note text,
    details jsonb, created_at timestamptz DEFAULT now());
  INSERT INTO customers VALUES (1, 'Ada'), (2, 'Bob');
  INSERT INTO orders (customer_id, status, amount, note, details)
    SELECT n % 2 + 1, CASE n % 2 WHEN 0 THEN 'open' ELSE 'done' END, n * 10, 'first order ' || n,
      '{"city": "Bonn", "tags": ["a"]}' FROM generate_series(1, 20) AS n;
  CREATE SCHEMA sales;
  CREATE MATERIALIZED VIEW sales.monthly AS SELECT date_trunc('month', created_at) AS month, sum(amount) FROM orders GROUP BY 1;
  CREATE VIEW open_orders AS SELECT id, amount FROM orders WHERE status = 'open' AND created_at <= now();
  CREATE TABLE "Mixed Case" ("Weird ; Column" int);
  CREATE TABLE harm_done (what text);
  CREATE SEQUENCE harm_counted;
  CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $f$ BEGIN PERFORM nextval('harm_counted'); INSERT INTO harm_done VALUES ('harm'); RETURN 1; END $f$;
  CREATE FUNCTION harm_immutable() RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 1';
  CREATE FUNCTION harm_order(orders) RETURNS int LANGUAGE sql AS 'SELECT harm()';
  CREATE FUNCTION harm_int(int, int) RETURNS int LANGUAGE sql AS 'SELECT harm()';
  CREATE OPERATOR @@@ (LEFTARG = int, RIGHTARG = int, FUNCTION = harm_int);
  CREATE FUNCTION lower(unknown text) RETURNS text LANGUAGE sql AS 'SELECT harm()::text';
  CREATE DOMAIN harmful AS text CHECK (harm() = 1);
  CREATE VIEW harmful_view AS SELECT harm() AS harmed;
  CREATE VIEW harmful_behind AS SELECT * FROM harmful_view;
  CREATE VIEW sleeping_view AS SELECT pg_sleep(1)::text AS slept;
  CREATE TABLE harmful_rows (id int);
  INSERT INTO harmful_rows VALUES (1);
  ALTER TABLE harmful_rows ENABLE ROW LEVEL SECURITY;
  CREATE POLICY harmful ON harmful_rows USING (harm() = 1);
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC;`;

/** Schema of a service with vectors: extensions in `public`, beside tables and functions of users. */
const extended = `
  CREATE EXTENSION vector; CREATE EXTENSION citext; CREATE EXTENSION pgcrypto; CREATE EXTENSION unaccent;
  CREATE EXTENSION "uuid-ossp"; CREATE EXTENSION tablefunc; CREATE EXTENSION hstore;
  CREATE SCHEMA search; CREATE EXTENSION pg_trgm SCHEMA search; GRANT USAGE ON SCHEMA search TO PUBLIC;
  CREATE TABLE items (id int PRIMARY KEY, embedding vector(3), label citext, facts hstore);
  INSERT INTO items VALUES (1, '[1,0,0]', 'Apple', 'a=>1'), (2, '[0,1,0]', 'Pear', 'a=>2'), (3, '[0.9,0.1,0]', 'apricot', 'b=>3');
  CREATE VIEW near_items AS SELECT id, embedding <-> '[1,0,0]' AS distance FROM items;
  CREATE TABLE harm_done (what text);
  CREATE SEQUENCE harm_counted;
  CREATE FUNCTION harm() RETURNS int LANGUAGE plpgsql SECURITY DEFINER AS
    $f$ BEGIN PERFORM nextval('harm_counted'); INSERT INTO harm_done VALUES ('harm'); RETURN 1; END $f$;
  CREATE FUNCTION harm_in_extension() RETURNS int LANGUAGE sql AS 'SELECT harm()';
  ALTER EXTENSION citext ADD FUNCTION harm_in_extension();
  CREATE FUNCTION l2_distance(real[], real[]) RETURNS float8 LANGUAGE sql AS 'SELECT harm()::float8';
  CREATE FUNCTION search.similarity(varchar, varchar) RETURNS real LANGUAGE sql AS 'SELECT harm()::real';
  CREATE DOMAIN harmful AS text CHECK (harm() = 1);
  GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO PUBLIC`;

describe.skipIf(!hasEngine("postgresql", version))("the query console", () => {
  const guard = createGuardThread(postgresql);
  let machine: EngineMachine;
  let owner: Client;

  beforeAll(async () => {
    const verifier = scramVerifier(password);
    machine = await createEngineMachine(async (deps) => createPostgresqlDriver(deps), "postgresql", version, {
      users: [create(EngineUserSchema, { username: "app_user", role: "admin", verifier })],
    });
    await machine.bringUp();
    owner = await connectPostgresql(machine, { user: "app_user", password });
    await owner.query(schema);
  });
  afterAll(async () => {
    await owner?.end();
    await guard.close();
    await machine?.remove();
  });

  /** Runs a statement as the API does: the guard checks it, and the engine gets its printed form. */
  async function execute(sql: string, change: Partial<ReadOnlyQuery> = {}) {
    const verdict = await guard.check(sql);
    if ("refused" in verdict) return { refusal: { message: verdict.refused, position: verdict.position, name: "" } };
    const limits = { rowsMax: 1_000, bytesMax: 8 << 20, timeoutMs: 10_000, ...change };
    const query = { database: "defaultdb", ...verdict, ...limits };
    const response = await machine.driver.readOnlyQuery?.run(machine.instance, query, machine.signal);
    if (response === undefined) throw new Error("the driver has no console");
    if (!("refusal" in response)) return response;
    return { refusal: { ...response.refusal, position: requestPosition(response.refusal, verdict) } };
  }

  async function resultOf(sql: string, change = {}) {
    const response: ReadOnlyResult = await execute(sql, change);
    if ("refusal" in response) throw new Error(`${sql}: ${response.refusal.message}`);
    return { ...response, rows: JSON.parse(response.rows) as unknown[][] };
  }

  /** State that an effect would change. */
  async function traces(): Promise<unknown> {
    const { rows } = await owner.query(`SELECT
      (SELECT md5(string_agg(orders::text, ',' ORDER BY id)) FROM orders) AS orders,
      (SELECT count(*) FROM harm_done) AS harmed, (SELECT is_called FROM harm_counted) AS counted,
      (SELECT last_value FROM orders_id_seq) AS sequence,
      (SELECT count(*) FROM pg_class) AS relations, (SELECT count(*) FROM pg_proc) AS functions,
      (SELECT count(*) FROM pg_roles) AS roles, (SELECT count(*) FROM pg_extension) AS extensions,
      (SELECT count(*) FROM pg_largeobject_metadata) AS objects, (SELECT count(*) FROM pg_prepared_xacts) AS prepared,
      (SELECT count(*) FROM pg_replication_slots) AS slots, (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory') AS locks,
      (SELECT md5(string_agg(relacl::text, ',' ORDER BY oid)) FROM pg_class) AS rights,
      (SELECT count(*) FROM pg_description) AS remarks`);
    return rows[0];
  }

  test(`runs ${allowedStatements.length} allowed statements`, async () => {
    expect(allowedStatements.length).toBeGreaterThanOrEqual(100);
    const refused: string[] = [];
    for (const sql of allowedStatements) {
      const response = await execute(sql);
      if ("refusal" in response) refused.push(`${sql}: ${response.refusal.message}`);
    }
    expect(refused).toEqual([]);
  });

  test(`rejects ${attacks.length} attacks, and none leaves a trace`, async () => {
    expect(attacks.length).toBeGreaterThanOrEqual(300);
    const before = await traces();
    const passed: string[] = [];
    for (const sql of attacks) if (!("refusal" in (await execute(sql)))) passed.push(sql.slice(0, 200));
    expect(passed).toEqual([]);
    expect(await traces()).toEqual(before);
  });

  test("executes no writing statement even without the guard", async () => {
    const before = await traces();
    const raw = (sql: string) =>
      machine.driver.readOnlyQuery?.run(
        machine.instance,
        {
          database: "defaultdb",
          sql,
          functions: [],
          types: [],
          qualified: [],
          relations: [],
          rowsMax: 10,
          bytesMax: 10_000,
          timeoutMs: 5_000,
        },
        machine.signal,
      );
    for (const sql of ["SELECT harm()", "SELECT nextval('public.orders_id_seq')", "SELECT public.harm()"])
      expect(await raw(sql)).toHaveProperty("refusal");
    expect(await traces()).toEqual(before);
    const inside = {
      database: "holdfast",
      sql: "SELECT 1",
      functions: [],
      types: [],
      qualified: [],
      relations: [],
      rowsMax: 1,
      bytesMax: 100,
      timeoutMs: 5_000,
    };
    expect(await machine.driver.readOnlyQuery?.run(machine.instance, inside, machine.signal)).toHaveProperty("refusal");
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

  test.each([
    "SELECT string_agg(repeat('x', 1000000), '') FROM generate_series(1, 2000)",
    "SELECT length(repeat('x', 1000000000))",
    "SELECT array_length(array_agg(n), 1) FROM (SELECT generate_series(1, 100000000) AS n) AS x",
    "SELECT json_agg(repeat('x', 1000)) FROM generate_series(1, 1000000)",
    "SELECT repeat('x', 50000000)",
    "SELECT length(lpad('', 200000000, 'x') || lpad('', 200000000, 'y'))",
    "EXPLAIN SELECT repeat('x', 500000000)",
  ])("%s fails at the memory limit of one session, and the engine continues", async (sql) => {
    const started = async () => (await owner.query("SELECT pg_postmaster_start_time()::text AS at")).rows[0].at;
    const sessions = "SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = 'holdfast_console'";
    const before = await started();
    const message = "The statement needs more memory than the 128 MiB that a console statement may use.";
    expect(await execute(sql, { timeoutMs: 60_000 })).toMatchObject({ refusal: { message } });
    await waitUntil("its session has ended", async () => (await owner.query(sessions)).rows[0].count === 0);
    expect(await started()).toBe(before);
    expect((await resultOf("SELECT count(*) FROM orders")).rows).toEqual([["20"]]);
  });

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
    await withSession(machine.instance, machine.signal, (session) => session.rows(cancel));
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

  describe("in a database with extensions", () => {
    let client: Client;

    beforeAll(async () => {
      await owner.query("CREATE DATABASE extended");
      client = await connectPostgresql(machine, { user: "app_user", password, database: "extended" });
      await client.query(extended);
    });
    afterAll(() => client?.end());

    const inExtended = (sql: string) => execute(sql, { database: "extended" });

    test.each(extensionStatements)("%s answers %j", async (sql, first) => {
      expect((await resultOf(sql, { database: "extended" })).rows[0]).toEqual(first);
    });

    test(`refuses ${extensionAttacks.length} statements in which a user's object shadows an extension's`, async () => {
      const passed: string[] = [];
      for (const sql of extensionAttacks) if (!("refusal" in (await inExtended(sql)))) passed.push(sql);
      expect(passed).toEqual([]);
      const { rows } = await client.query(
        "SELECT (SELECT count(*) FROM harm_done) + is_called::int AS harm FROM harm_counted",
      );
      expect(rows).toEqual([{ harm: "0" }]);
    });

    test("looks up no name of an extension in a schema where users can create operators", async () => {
      await client.query(`CREATE FUNCTION harm_near(text, text) RETURNS float8 LANGUAGE sql AS 'SELECT harm()::float8';
        CREATE OPERATOR <-> (LEFTARG = text, RIGHTARG = text, FUNCTION = harm_near)`);
      const none = { refusal: { message: expect.stringMatching(/^operator does not exist/) } };
      expect(await inExtended("SELECT embedding <-> '[1,0,0]' FROM items")).toMatchObject(none);
      const mixed = {
        refusal: { message: expect.stringMatching(/^The operator public.<-> belongs neither/), position: 18 },
      };
      expect(await inExtended("SELECT embedding OPERATOR(public.<->) embedding FROM items")).toMatchObject(mixed);
      await client.query("DROP OPERATOR <-> (text, text)");
      expect(
        (await resultOf("SELECT embedding <-> '[1,0,0]' FROM items WHERE id = 1", { database: "extended" })).rows,
      ).toEqual([[0]]);
    });
  });

  describe("in a database with users' code that no statement names", () => {
    let client: Client;

    beforeAll(async () => {
      await owner.query("CREATE DATABASE coded");
      client = await connectPostgresql(machine, { user: "app_user", password, database: "coded" });
      await client.query(routeFixture);
      await client.query(harmlessObjects);
      for (const { setup: laid } of routes) await client.query(laid);
    });
    afterAll(() => client?.end());

    /** Same as `execute`, without the agent's own check. */
    async function executeUnchecked(sql: string) {
      const verdict = await guard.check(sql);
      if ("refused" in verdict) throw new Error(verdict.refused);
      const names = { functions: [], types: [], relations: [], qualified: [] };
      const limits = { rowsMax: 10, bytesMax: 10_000, timeoutMs: 5_000 };
      const query = { database: "coded", sql: verdict.sql, ...names, ...limits };
      return machine.driver.readOnlyQuery?.run(machine.instance, query, machine.signal);
    }

    for (const { name, statements, why } of routes)
      test.each(statements)(`${name}: %s`, async (sql) => {
        const ran = { refusal: { message: expect.stringMatching(/^code of users ran/) } };
        expect(await executeUnchecked(sql)).toMatchObject(ran);
        const refused = { refusal: { message: expect.stringMatching(why) } };
        expect(await execute(sql, { database: "coded" })).toMatchObject(refused);
      });

    test.each(besideStatements)("%s answers %j", async (sql, first) => {
      expect((await resultOf(sql, { database: "coded" })).rows[0]).toEqual(first);
    });
  });

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
