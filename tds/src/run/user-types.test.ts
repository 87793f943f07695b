import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient, TYPES } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;
const errors = async (sql: string) => (await client.batch(sql)).errors;
const rows = async (sql: string) => {
  const result = await client.batch(sql);
  expect(result.errors, result.messages.join("\n")).toEqual([]);
  return result.sets.at(-1);
};
const create = async (...texts: string[]) => {
  for (const text of texts) {
    const { errors: numbers, messages } = await client.batch(text);
    expect(numbers, messages.join(" ")).toEqual([]);
  }
};

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  await create(
    "CREATE TYPE dbo.PhoneNumber FROM varchar(20) NOT NULL",
    "CREATE TYPE Amount FROM decimal(12, 3)",
    "CREATE TYPE dbo.Flag FROM bit NULL",
    `CREATE TYPE dbo.OrderLines AS TABLE (
       Id int NOT NULL PRIMARY KEY, Product nvarchar(50) NOT NULL, Price dbo.Amount NULL DEFAULT 1.5, At datetime2(3) NULL,
       CHECK (Id > 0), INDEX_NAME varchar(10) NULL)`,
    "CREATE TABLE Orders (Id int PRIMARY KEY, Product nvarchar(50), Price decimal(12, 3) NULL, At datetime2(3) NULL)",
    `CREATE PROCEDURE dbo.AddLines @Lines dbo.OrderLines READONLY, @Minimum int = 0, @Count int = NULL OUTPUT AS
     BEGIN
       INSERT INTO Orders SELECT Id, Product, Price, At FROM @Lines WHERE Id >= @Minimum;
       SET @Count = @@ROWCOUNT;
     END`,
  );
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

const columns = [
  { name: "Id", type: TYPES.Int },
  { name: "Product", type: TYPES.NVarChar, length: 50 },
  { name: "Price", type: TYPES.Decimal, precision: 12, scale: 3 },
  { name: "At", type: TYPES.DateTime2, scale: 3 },
  { name: "Index_Name", type: TYPES.VarChar, length: 10 },
];
const at = new Date("2026-11-28T13:14:15.160Z");
const table = (list: unknown[][], more = {}) => ({ schema: "dbo", name: "OrderLines", columns, rows: list, ...more });

describe("alias types", () => {
  test("are types of columns, variables, parameters and casts", async () => {
    await create(
      "CREATE TABLE People (Id int IDENTITY PRIMARY KEY, Phone dbo.PhoneNumber, Other dbo.PhoneNumber NULL, Owed Amount, Known dbo.Flag)",
      "INSERT INTO People (Phone, Owed, Known) VALUES ('0123', 2.5, 1)",
      "CREATE PROCEDURE dbo.Find @phone dbo.PhoneNumber AS SELECT Owed FROM People WHERE Phone = @phone",
      "CREATE FUNCTION dbo.Double(@a dbo.Amount) RETURNS dbo.Amount AS BEGIN DECLARE @b dbo.Amount = @a * 2; RETURN @b END",
    );
    expect(await errors("INSERT INTO People (Owed) VALUES (1)")).toEqual([515]);
    expect(await errors(`INSERT INTO People (Phone) VALUES ('${"1".repeat(21)}')`)).toEqual([2628]);
    expect(await rows("EXEC dbo.Find '0123'")).toEqual([{ Owed: 2.5 }]);
    expect(await rows("DECLARE @p dbo.Amount = '1.23456'; SELECT @p AS p, dbo.Double(@p) AS d")).toEqual([
      { p: 1.235, d: 2.47 },
    ]);
    expect(await rows("IF CAST('2.5' AS dbo.Amount) > 2 SELECT Phone, Known FROM People")).toEqual([
      { Phone: "0123", Known: true },
    ]);
    const { sets } = await client.execute("SELECT Id FROM People WHERE Phone = @p", [["p", TYPES.VarChar, "0123"]]);
    expect(sets).toEqual([[{ Id: 1 }]]);
  });

  test("are in the catalog with their base types", async () => {
    const types = `SELECT name, TYPE_NAME(system_type_id) AS base, max_length, [precision], scale, is_nullable, is_table_type
      FROM sys.types WHERE is_user_defined = 1 AND is_table_type = 0 ORDER BY name`;
    const shape = { is_table_type: 0, precision: 0, scale: 0, is_nullable: 1 };
    expect(await rows(types)).toEqual([
      { ...shape, name: "Amount", base: "decimal", max_length: 17, precision: 12, scale: 3 },
      { ...shape, name: "Flag", base: "bit", max_length: 1 },
      { ...shape, name: "PhoneNumber", base: "varchar", max_length: 20, is_nullable: 0 },
    ]);
    const named = `SELECT c.name, TYPE_NAME(c.user_type_id) AS type, TYPE_NAME(c.system_type_id) AS base, c.is_nullable
      FROM sys.columns c WHERE c.object_id = OBJECT_ID('People') AND c.name <> 'Id' ORDER BY c.column_id`;
    expect(await rows(named)).toEqual([
      { name: "Phone", type: "PhoneNumber", base: "varchar", is_nullable: 0 },
      { name: "Other", type: "PhoneNumber", base: "varchar", is_nullable: 1 },
      { name: "Owed", type: "Amount", base: "decimal", is_nullable: 1 },
      { name: "Known", type: "Flag", base: "bit", is_nullable: 1 },
    ]);
    const standard = "SELECT DATA_TYPE, NUMERIC_SCALE FROM INFORMATION_SCHEMA.COLUMNS WHERE COLUMN_NAME = 'Owed'";
    expect(await rows(standard)).toEqual([{ DATA_TYPE: "decimal", NUMERIC_SCALE: 3 }]);
    expect(await rows("SELECT TYPE_ID('dbo.Amount') - TYPE_ID('amount') AS a, TYPE_ID('int') AS b")).toEqual([
      { a: 0, b: 56 },
    ]);
  });

  test("are dropped when nothing uses them", async () => {
    expect(await errors("DROP TYPE dbo.PhoneNumber")).toEqual([3732]);
    await create("CREATE TYPE dbo.Short FROM int", "DROP TYPE Short", "DROP TYPE IF EXISTS dbo.Short");
    expect(await errors("DROP TYPE dbo.Short")).toEqual([3701]);
    expect(await errors("DECLARE @a dbo.Short; SELECT 1")).toEqual([2715]);
    expect(await errors("CREATE TYPE Amount FROM int")).toEqual([2714]);
    expect(await errors("CREATE TYPE Other FROM dbo.Amount")).toEqual([15_019]);
    expect(await errors("CREATE TABLE Bad (a nothing)")).toEqual([2715]);
    expect(await errors("CREATE PROCEDURE Bad @a nothing AS SELECT 1")).toEqual([2715]);
    expect(await errors("CREATE FUNCTION Bad(@a int) RETURNS nothing AS BEGIN RETURN 1 END")).toEqual([2715]);
    expect(
      await errors("CREATE TYPE Big FROM varchar(10); DECLARE @a Big = 'a'; SELECT @a AS a; DROP TYPE Big"),
    ).toEqual([]);
  });
});

describe("table types", () => {
  test("are types of variables, with their constraints and defaults", async () => {
    const declared = `DECLARE @t dbo.OrderLines; INSERT INTO @t (Id, Product) VALUES (1, N'a'), (2, N'b');
      UPDATE @t SET Product = 'c' WHERE Id = 2; DELETE @t WHERE Id = 1; SELECT Id, Product, Price FROM @t`;
    expect(await rows(declared)).toEqual([{ Id: 2, Product: "c", Price: 1.5 }]);
    // The variable of the first batch was dropped at its end.
    expect(await rows(declared)).toEqual([{ Id: 2, Product: "c", Price: 1.5 }]);
    expect(await errors("DECLARE @t dbo.OrderLines; INSERT @t (Id, Product) VALUES (0, 'a')")).toEqual([547]);
    expect(await errors("DECLARE @t dbo.OrderLines; INSERT @t (Id) VALUES (1)")).toEqual([515]);
    expect(await errors("DECLARE @t dbo.OrderLines, @t int")).toEqual([134]);
    expect(await errors("CREATE TABLE Bad (a dbo.OrderLines)")).toEqual([350]);
    expect(await errors("CREATE TYPE dbo.Bad AS TABLE (a int, CHECK (b > 1))")).toEqual([207]);
    const { rows: left } = await tds.superuser.query(
      "SELECT relname FROM pg_class WHERE relname ~ ':' AND relkind = 'r'",
    );
    expect(left).toEqual([]);
  });

  test("are passed to procedures by variables", async () => {
    const call = `DECLARE @l dbo.OrderLines, @n int; INSERT @l (Id, Product) VALUES (11, N'x'), (12, N'y');
      EXEC dbo.AddLines @l, @Minimum = 12, @Count = @n OUTPUT;
      EXEC dbo.AddLines @Lines = @l, @Minimum = 99;
      SELECT @n AS n, (SELECT COUNT(*) FROM @l) AS l`;
    expect(await rows(call)).toEqual([{ n: 1, l: 2 }]);
    await create("DECLARE @n int; EXEC dbo.AddLines @Count = @n OUTPUT; IF @n <> 0 THROW 50001, 'rows', 1");
    await create("EXEC dbo.AddLines DEFAULT");
    expect(await errors("DECLARE @t TABLE (a int); EXEC dbo.AddLines @t")).toEqual([206]);
    expect(await errors("EXEC dbo.AddLines 5")).toEqual([206]);
    expect(await errors("DECLARE @l dbo.OrderLines; EXEC dbo.Find @l")).toEqual([206]);
    expect(await errors("CREATE PROCEDURE Bad @l dbo.OrderLines AS SELECT 1")).toEqual([352]);
    expect(await errors("CREATE FUNCTION Bad(@l dbo.OrderLines READONLY) RETURNS int AS BEGIN RETURN 1 END")).toEqual([
      40_517,
    ]);
    await create("CREATE PROCEDURE dbo.Changes @l dbo.OrderLines READONLY AS DELETE @l");
    expect(await errors("EXEC dbo.Changes")).toEqual([10_700]);
    await create("CREATE PROCEDURE dbo.Outer1 @l dbo.OrderLines READONLY AS EXEC dbo.AddLines @l");
    await create("DECLARE @l dbo.OrderLines; INSERT @l (Id, Product) VALUES (15, 'z'); EXEC dbo.Outer1 @l");
    expect(await rows("SELECT Product FROM Orders WHERE Id = 15")).toEqual([{ Product: "z" }]);
  });

  test("are parameters of RPC messages, by a procedure and by sp_executesql", async () => {
    const list = [
      [1, "one", 1.25, at, "i"],
      [2, "zwei \u{1f600}", null, null, null],
    ];
    const { output, errors: numbers } = await client.call(
      "dbo.AddLines",
      [["Lines", TYPES.TVP, table(list)]],
      [["Count", TYPES.Int, null]],
    );
    expect({ output, numbers }).toEqual({ output: { Count: 2 }, numbers: [] });
    expect(await rows("SELECT * FROM Orders WHERE Id < 3 ORDER BY Id")).toEqual([
      { Id: 1, Product: "one", Price: 1.25, At: at },
      { Id: 2, Product: "zwei \u{1f600}", Price: null, At: null },
    ]);
    const sql = "SELECT SUM(Id) AS s, @more AS m FROM @lines";
    const executed = await client.execute(sql, [
      ["lines", TYPES.TVP, table(list)],
      ["more", TYPES.Int, 5],
    ]);
    expect(executed.sets).toEqual([[{ s: 3, m: 5 }]]);
    const empty = await client.execute("SELECT COUNT(*) AS n FROM @lines", [["lines", TYPES.TVP, table([])]]);
    expect(empty.sets).toEqual([[{ n: 0 }]]);
    const duplicate = await client.call("dbo.AddLines", [["Lines", TYPES.TVP, table([list[0] ?? [], list[0] ?? []])]]);
    expect(duplicate.errors).toEqual([2627]);
    const fewer = { columns: columns.slice(1), rows: [["a", 1, at, "b"]] };
    expect((await client.call("dbo.AddLines", [["Lines", TYPES.TVP, table([], fewer)]])).errors).toEqual([500]);
    expect((await client.call("dbo.Find", [["phone", TYPES.TVP, table(list)]])).errors).toEqual([206]);
  });

  test("an error of a parameter leaves the transaction", async () => {
    await create("BEGIN TRAN; INSERT INTO Orders (Id) VALUES (500)");
    const one = [7, "a", null, null, null];
    const { errors: numbers } = await client.call("dbo.AddLines", [["Lines", TYPES.TVP, table([one, one])]]);
    expect(numbers).toEqual([2627]);
    expect(await rows("SELECT COUNT(*) AS n, @@TRANCOUNT AS t FROM Orders WHERE Id = 500")).toEqual([{ n: 1, t: 1 }]);
    await create("ROLLBACK");
  });

  test("have up to a million rows", async () => {
    await create(
      "CREATE TYPE dbo.Numbers AS TABLE (Number int NOT NULL)",
      "CREATE PROCEDURE dbo.CountNumbers @n dbo.Numbers READONLY AS SELECT COUNT(*) AS n, SUM(CAST(Number AS bigint)) AS s FROM @n",
    );
    const numbers = (count: number) => ({
      schema: "dbo",
      name: "Numbers",
      columns: [{ name: "Number", type: TYPES.Int }],
      rows: Array.from({ length: count }, (_, index) => [index]),
    });
    const many = await client.call("dbo.CountNumbers", [["n", TYPES.TVP, numbers(100_000)]]);
    expect(many.sets).toEqual([[{ n: 100_000, s: "4999950000" }]]);
    expect((await client.call("dbo.CountNumbers", [["n", TYPES.TVP, numbers(1_000_001)]])).errors).toEqual([8009]);
    expect(await rows("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("are in the catalog with their columns", async () => {
    const sql = `SELECT t.name, c.name AS column_name, y.name AS type FROM sys.table_types t
      JOIN sys.columns c ON c.object_id = t.type_table_object_id JOIN sys.types y ON y.user_type_id = c.user_type_id
      WHERE t.name = 'orderlines' AND SCHEMA_NAME(t.schema_id) = 'dbo' ORDER BY c.column_id`;
    expect(await rows(sql)).toEqual(
      [
        ["Id", "int"],
        ["Product", "nvarchar"],
        ["Price", "Amount"],
        ["At", "datetime2"],
        ["INDEX_NAME", "varchar"],
      ].map(([name, type]) => ({ name: "OrderLines", column_name: name, type })),
    );
    await create("CREATE TYPE dbo.Once AS TABLE (a int)", "DROP TYPE dbo.Once");
    expect(await errors("DECLARE @t dbo.Once")).toEqual([2715]);
  });
});
