import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;
const batch = (sql: string) => client.batch(sql);
const errors = async (sql: string) => (await client.batch(sql)).errors;
const rows = async (sql: string) => {
  const result = await client.batch(sql);
  expect(result.errors, result.messages.join("\n")).toEqual([]);
  return result.sets.at(-1);
};
const create = async (...texts: string[]) => {
  for (const text of texts) {
    const { errors: numbers, messages } = await client.batch(text);
    expect(numbers, messages.join("\n")).toEqual([]);
  }
};

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  await create(
    `CREATE TABLE Orders (Id int IDENTITY PRIMARY KEY, Customer nvarchar(50) NOT NULL, Total decimal(10,2) NOT NULL);
     INSERT INTO Orders (Customer, Total) VALUES (N'Ann', 5), (N'ann', 7.5), (N'Bob', 1)`,
    `CREATE FUNCTION dbo.Spent (@Customer nvarchar(50), @Least decimal(10,2) = 0) RETURNS decimal(10,2) AS
     BEGIN
       DECLARE @sum decimal(10,2);
       SELECT @sum = SUM(Total) FROM Orders WHERE Customer = @Customer AND Total >= @Least;
       IF @sum IS NULL RETURN 0;
       RETURN @sum;
     END`,
    `CREATE FUNCTION dbo.Digits (@n int) RETURNS varchar(20) WITH SCHEMABINDING AS
     BEGIN
       DECLARE @i int = 1, @text varchar(20) = '';
       WHILE 1 = 1
       BEGIN
         IF @i > @n BREAK;
         SET @text += CAST(@i AS varchar(2));
         SET @i += 1;
       END
       RETURN @text
     END`,
    `CREATE FUNCTION dbo.OrdersOf (@Customer nvarchar(50)) RETURNS TABLE AS
     RETURN (SELECT Id, Customer AS Name, Total * 2 AS Twice FROM Orders WHERE Customer = @Customer)`,
    `CREATE FUNCTION dbo.Numbers (@n int) RETURNS @t TABLE (n int NOT NULL PRIMARY KEY, word nvarchar(9) DEFAULT 'none') AS
     BEGIN
       DECLARE @i int;
       SET @i = 0;
       WHILE @i < @n BEGIN SET @i = @i + 1; INSERT INTO @t (n) VALUES (@i); END;
       UPDATE @t SET word = 'even' WHERE n % 2 = 0;
       DELETE @t WHERE n = 3;
       RETURN;
     END`,
  );
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

describe("functions", () => {
  test("with a value are called in expressions, with defaults, and compare text without case", async () => {
    expect(
      await rows("SELECT dbo.Spent('ANN', DEFAULT) AS a, DBO.spent(N'Ann ', 6) AS b, dbo.Spent('x', NULL) AS c"),
    ).toEqual([{ a: 12.5, b: 7.5, c: 0 }]);
    expect(
      await rows("SELECT Customer FROM Orders WHERE dbo.Spent(Customer, DEFAULT) < 2 AND dbo.Digits(Id) = '123'"),
    ).toEqual([{ Customer: "Bob" }]);
    expect(await rows("DECLARE @a varchar(20); SET @a = dbo.Digits(4); SELECT @a AS a")).toEqual([{ a: "1234" }]);
  });

  test("with a query are sources of FROM and APPLY", async () => {
    const sql =
      "SELECT o.Id, f.Name, f.Twice FROM Orders o CROSS APPLY dbo.OrdersOf(o.Customer) AS f WHERE f.name = 'BOB'";
    expect(await batch(sql)).toMatchObject({ errors: [], sets: [[{ Id: 3, Name: "Bob", Twice: 2 }]] });
    expect(await rows("SELECT * FROM dbo.OrdersOf('ann') ORDER BY Id DESC")).toEqual([
      { Id: 2, Name: "ann", Twice: 15 },
      { Id: 1, Name: "Ann", Twice: 10 },
    ]);
  });

  test("with a table variable return its rows", async () => {
    const expected = [
      { n: 1, word: "none" },
      { n: 2, word: "even" },
      { n: 4, word: "even" },
    ];
    expect(await rows("SELECT * FROM dbo.Numbers(4) ORDER BY n")).toEqual(expected);
    expect(
      await rows("SELECT v.a, t.n FROM (VALUES (1), (2)) AS v (a) CROSS APPLY dbo.Numbers(v.a) t ORDER BY 1, 2"),
    ).toEqual([
      { a: 1, n: 1 },
      { a: 2, n: 1 },
      { a: 2, n: 2 },
    ]);
  });

  test("are functions of PostgreSQL for clients of port 5432", async () => {
    const sql = "SELECT dbo.spent('aNN', 0)::text AS spent, (SELECT count(*) FROM dbo.ordersof('bob')) AS n";
    expect((await tds.superuser.query(sql)).rows).toEqual([{ spent: "12.50", n: "1" }]);
  });

  test("are altered, described and dropped", async () => {
    await create("CREATE OR ALTER FUNCTION dbo.Twice (@n int) RETURNS int AS BEGIN RETURN @n * 2 END");
    await create("CREATE VIEW Doubled AS SELECT dbo.Twice(4) AS d");
    await create("ALTER FUNCTION dbo.Twice (@n int) RETURNS int AS BEGIN RETURN @n * 2 + 1 END");
    expect(await rows("SELECT d FROM Doubled")).toEqual([{ d: 9 }]);
    expect(await errors("DROP FUNCTION dbo.Twice")).toEqual([3729]);
    expect(
      await rows("SELECT type, type_desc FROM sys.objects WHERE object_id = OBJECT_ID('dbo.Twice', 'FN')"),
    ).toEqual([{ type: "FN", type_desc: "SQL_SCALAR_FUNCTION" }]);
    expect(await rows("SELECT definition FROM sys.sql_modules WHERE object_id = OBJECT_ID('OrdersOf')")).toEqual([
      { definition: expect.stringContaining("CREATE FUNCTION dbo.OrdersOf (@Customer nvarchar(50))") },
    ]);
    await create("DROP VIEW Doubled", "DROP FUNCTION dbo.Twice", "DROP FUNCTION IF EXISTS dbo.Twice");
  });

  // biome-ignore format: a table
  test.each([
    [2714, "CREATE FUNCTION dbo.Digits (@n int) RETURNS int AS BEGIN RETURN 1 END"],
    [208,  "ALTER FUNCTION dbo.Absent () RETURNS int AS BEGIN RETURN 1 END"],
    [3701, "DROP FUNCTION dbo.Absent"],
    [4121, "SELECT dbo.Absent(1)"],
    [208,  "SELECT * FROM dbo.Digits(1)"],
    [313,  "SELECT dbo.Digits()"],
    [8144, "SELECT dbo.Digits(1, 2)"],
    [111,  "SELECT 1; CREATE FUNCTION f () RETURNS int AS BEGIN RETURN 1 END"],
    [443,  "CREATE FUNCTION f () RETURNS int AS BEGIN INSERT INTO Orders (Customer, Total) VALUES ('x', 1) RETURN 1 END"],
    [444,  "CREATE FUNCTION f () RETURNS int AS BEGIN SELECT 1 AS a RETURN 1 END"],
    [455,  "CREATE FUNCTION f () RETURNS int AS BEGIN DECLARE @a int END"],
    [557,  "CREATE FUNCTION f () RETURNS int AS BEGIN EXEC p RETURN 1 END"],
    [137,  "CREATE FUNCTION f () RETURNS int AS BEGIN RETURN @a END"],
    [208,  "CREATE FUNCTION f () RETURNS int AS BEGIN RETURN (SELECT COUNT(*) FROM absent) END"],
    [4514, "CREATE FUNCTION f () RETURNS TABLE AS RETURN SELECT 1"],
    [40517, "CREATE FUNCTION f () RETURNS int WITH ENCRYPTION AS BEGIN RETURN 1 END"],
  ])("error %i: %s", async (number, sql) => {
    expect(await errors(sql)).toEqual([number]);
  });

  test("EXECUTE and SELECT on them are granted and revoked", async () => {
    expect(await errors("REVOKE SELECT ON dbo.OrdersOf FROM PUBLIC; GRANT EXECUTE ON dbo.Spent TO PUBLIC")).toEqual([]);
    expect((await tds.superuser.query("SELECT proacl::text FROM pg_proc WHERE proname = 'ordersof'")).rows).toEqual([
      { proacl: expect.not.stringMatching(/[{,]=X/) },
    ]);
  });
});
