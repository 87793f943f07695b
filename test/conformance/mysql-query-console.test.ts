import { create } from "@bufbuild/protobuf";
import { mysql } from "@holdfast/controller/insight/query-console/mysql/console.ts";
import { readingFunctions } from "@holdfast/controller/insight/query-console/mysql/grammar.ts";
import { checkStatement } from "@holdfast/controller/insight/query-console/mysql/guard.ts";
import { EngineUserSchema } from "@holdfast/proto/holdfast/agent/v1/task_pb.ts";
import { createEngineMachine, type EngineMachine } from "@holdfast/testing/engines/engine-machine.ts";
import { connectMysql, mysqlVerifier } from "@holdfast/testing/engines/mysql-clients.ts";
import { requireRecipes } from "@holdfast/testing/engines/required-recipes.ts";
import { waitUntil } from "@holdfast/testing/wait-until.ts";
import type { Connection } from "mysql2/promise";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { ReadOnlyResult } from "@holdfast/agent/engines/insight-facets.ts";
import { createMysqlDriver } from "@holdfast/agent/engines/mysql/driver.ts";
import { numberOf, withSession } from "@holdfast/agent/engines/mysql/session.ts";

const skip = await requireRecipes(import.meta.filename, "mysql");
const password = "a password";

const schema = [
  "CREATE TABLE customers (id INT PRIMARY KEY, name TEXT COMMENT 'as on the invoice')",
  "CREATE TABLE orders (id BIGINT PRIMARY KEY, customer INT, at DATETIME(3), paid TIMESTAMP NULL, amount DECIMAL(10, 2), note BLOB, FOREIGN KEY (customer) REFERENCES customers (id))",
  "INSERT INTO customers VALUES (1, 'Ada')",
  "INSERT INTO orders VALUES (9007199254740993, 1, '2026-01-02 03:04:05.678', '2026-01-02 03:04:05', 1.50, x'00ff')",
  "CREATE TABLE harm_done (what TEXT)",
  "CREATE FUNCTION harm() RETURNS INT DETERMINISTIC MODIFIES SQL DATA BEGIN INSERT INTO harm_done VALUES ('harm'); RETURN 1; END",
  "CREATE FUNCTION abs(a INT) RETURNS INT DETERMINISTIC MODIFIES SQL DATA RETURN harm()",
  "CREATE VIEW plain AS SELECT id FROM customers",
  "CREATE VIEW harmful AS SELECT harm() AS h",
  "CREATE VIEW `a``b` AS SELECT * FROM harmful",
];

describe.skipIf(skip !== undefined)("the query console of MySQL", () => {
  let machine: EngineMachine;
  let owner: Connection;

  beforeAll(async () => {
    const user = create(EngineUserSchema, { username: "app_user", role: "admin", verifier: mysqlVerifier(password) });
    machine = await createEngineMachine(async (deps) => createMysqlDriver(deps), "mysql", "9.7", { users: [user] });
    await machine.bringUp();
    owner = await connectMysql(machine, { user: "app_user", password });
    for (const sql of schema) await owner.query(sql);
  });
  afterAll(async () => {
    owner?.destroy();
    await machine?.remove();
  });

  const limits = { database: "defaultdb", functions: [], types: [], qualified: [], relations: [], rowsMax: 100 };

  /** Runs a statement without the guard's check. */
  async function unchecked(sql: string, change: object = {}): Promise<ReadOnlyResult> {
    const query = { ...limits, bytesMax: 1 << 20, timeoutMs: 20_000, sql, ...change };
    const result = await machine.driver.readOnlyQuery?.run(machine.instance, query, machine.signal);
    if (result === undefined) throw new Error("the driver has no console");
    return result;
  }

  async function query(sql: string): Promise<unknown> {
    const verdict = checkStatement(sql);
    if ("refused" in verdict) return verdict;
    const result = await unchecked(verdict.sql, { relations: verdict.relations });
    return "refusal" in result ? result.refusal : JSON.parse(result.rows);
  }

  it("returns values in the types of JSON that hold them exactly", async () => {
    const sql =
      "SELECT orders.id, customer, at, paid, amount, note, 1.5e0 AS f, name, NULL FROM orders JOIN customers ON customer = customers.id";
    expect(await query(sql)).toEqual([
      ["9007199254740993", 1, "2026-01-02T03:04:05.678", "2026-01-02T03:04:05Z", "1.50", "0x00ff", 1.5, "Ada", null],
    ]);
    expect(await query("DESCRIBE customers")).toEqual([
      ["id", "int", "NO", "PRI", null, ""],
      ["name", "text", "YES", "", null, ""],
    ]);
    expect(await query("SHOW TABLES LIKE 'cust%'")).toEqual([["customers"]]);
    expect(await query("EXPLAIN SELECT * FROM plain")).toHaveLength(1);
  });

  it("calls functions of the engine only", async () => {
    const missing: string[] = [];
    await withSession(machine.instance, machine.signal, async (session) => {
      // ER_SP_DOES_NOT_EXIST: the function is not one of the engine's.
      for (const name of readingFunctions)
        await session.rows(`SELECT ${name}(1, 2, 3, 4, 5, 6, 7, 8, 9) FROM (SELECT 1) t`).catch((error: unknown) => {
          if ([1305, 1046].includes(numberOf(error))) missing.push(name);
        });
    });
    expect(missing).toEqual([]);
    expect(await query("SELECT abs(-2)")).toEqual([[2]]);
    expect(await query("SELECT abs (-2)")).toHaveProperty("refused");
    expect(await query("SELECT harm()")).toHaveProperty("refused");
  });

  it.each(["SELECT * FROM harmful", "SELECT * FROM `a``b`", "SELECT (SELECT h FROM defaultdb . harmful)"])(
    "refuses views that call routines of users: %s",
    async (sql) => {
      expect(await query(sql)).toMatchObject({ message: expect.stringContaining("calls a routine") });
      expect((await owner.query("SELECT * FROM harm_done"))[0]).toEqual([]);
    },
  );

  it.each([
    "DELETE FROM customers",
    "SELECT harm()",
    "SELECT * FROM mysql.user",
    "SELECT * FROM holdfast.marks",
    "SELECT * FROM performance_schema.threads",
    "SELECT * FROM sys.version",
    "SELECT LOAD_FILE('/etc/passwd') IS NULL INTO OUTFILE '/tmp/x'",
    "CREATE TEMPORARY TABLE t (a INT)",
    "SET GLOBAL max_connections = 1",
    "SELECT 1; SELECT 2",
    "KILL 1",
    "SELECT * FROM customers FOR UPDATE",
    "SELECT * FROM harmful",
  ])("has no effect by a statement that no guard checked: %s", async (sql) => {
    expect(await unchecked(sql)).toHaveProperty("refusal");
    expect((await owner.query("SELECT * FROM harm_done"))[0]).toEqual([]);
    expect((await owner.query("SELECT * FROM customers"))[0]).toHaveLength(1);
  });

  it("ends a statement that runs too long, of any kind", async () => {
    const slow = `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
      SELECT COUNT(*) FROM n a, n b, n c, n d WHERE a.i * b.i * c.i * d.i = 7`;
    expect(await unchecked(slow, { timeoutMs: 300 })).toHaveProperty("refusal");
    const running = "SELECT * FROM performance_schema.processlist WHERE user = 'holdfast_console'";
    await waitUntil("no statement runs", async () => ((await owner.query(running))[0] as unknown[]).length === 0);
  });

  it("ends a statement that needs too much memory, and the engine continues to run", async () => {
    const rows = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)";
    const texts = ["a", "b", "c", "d"].map((text) => `MAX(LENGTH(CONCAT(REPEAT('${text}', 60000000 + i - i), i)))`);
    const large = `${rows} SELECT ${texts.join(", ")} FROM n`;
    expect(await query(large)).toMatchObject({ message: expect.stringContaining("memory") });
    expect(await query("SELECT 1")).toEqual([[1]]);
  });

  it("reads tables, columns and keys for the translation of a question", async () => {
    const result = await unchecked(mysql.schemaSql("open orders"));
    if ("refusal" in result) throw new Error(result.refusal.message);
    const tables = mysql.tablesOf(JSON.parse(result.rows) as unknown[][]);
    expect(tables[0]).toMatchObject({
      name: "defaultdb.orders",
      kind: "table",
      keys: ["FOREIGN KEY (customer) REFERENCES customers (id)", "PRIMARY KEY (id)"],
    });
    expect(tables.find(({ name }) => name === "defaultdb.customers")?.columns).toEqual([
      { name: "id", type: "int", comment: null },
      { name: "name", type: "text", comment: "as on the invoice" },
    ]);
    expect(tables.find(({ name }) => name === "defaultdb.plain")).toMatchObject({ kind: "view" });
    expect(mysql.explain("SELECT 1")).toBe("EXPLAIN SELECT 1");
    expect(mysql.explain("SHOW TABLES")).toBeUndefined();
  });
});
