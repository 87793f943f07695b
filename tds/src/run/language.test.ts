import { setImmediate } from "node:timers/promises";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const endless = "GENERATE_SERIES(1, 1000000) a CROSS JOIN GENERATE_SERIES(1, 1000000) b";
let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;
const batch = (sql: string) => client.batch(sql);
const rows = async (sql: string) => {
  const { sets, errors } = await client.batch(sql);
  expect(errors).toEqual([]);
  return sets.at(-1);
};
const errors = async (sql: string) => (await client.batch(sql)).errors;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  const { errors: failures } = await client.batch(`
    CREATE TABLE dbo.Customers (
      CustomerId int IDENTITY(1,1) NOT NULL CONSTRAINT PK_Customers PRIMARY KEY,
      Name nvarchar(50) NOT NULL,
      Email varchar(100) NULL CONSTRAINT UQ_Email UNIQUE,
      Balance money NOT NULL DEFAULT 0,
      IsActive bit NOT NULL DEFAULT 1,
      CONSTRAINT CK_Balance CHECK (Balance >= 0)
    );
    CREATE TABLE Orders (
      OrderId int IDENTITY(100,10) PRIMARY KEY,
      CustomerId int NOT NULL REFERENCES dbo.Customers (CustomerId) ON DELETE CASCADE,
      Total decimal(10,2) NULL,
      [Order Date] date NULL
    );
    INSERT INTO Customers (Name, Email, Balance) VALUES (N'Ann', 'ann@x.org', 10.5), (N'Bob', NULL, '20'), (N'Cid', 'cid@x.org', 0);
    INSERT Orders (CustomerId, Total, [Order Date]) VALUES (1, 5, '20260131'), (1, 7.125, '2026-02-01'), (2, 1, NULL);`);
  expect(failures).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

describe("queries", () => {
  // biome-ignore format: a table
  test.each([
    ["TOP with an order",            "SELECT TOP 2 Name FROM Customers ORDER BY Balance DESC",                           [{ Name: "Bob" }, { Name: "Ann" }]],
    ["TOP WITH TIES",                "SELECT TOP (1) WITH TIES CustomerId FROM Orders ORDER BY CustomerId",              [{ CustomerId: 1 }, { CustomerId: 1 }]],
    ["names in any case",            "select NAME, c.name AS n FROM DBO.customers C WHERE c.CUSTOMERID = 1",             [{ NAME: "Ann", n: "Ann" }]],
    ["text without regard to case",  "SELECT CustomerId FROM Customers WHERE name = 'aNN '",                             [{ CustomerId: 1 }]],
    ["LIKE with a set",              "SELECT Name FROM Customers WHERE Name LIKE '[ab]%' ORDER BY Name",                 [{ Name: "Ann" }, { Name: "Bob" }]],
    ["NULL first",                   "SELECT Email FROM Customers ORDER BY Email",                                       [{ Email: null }, { Email: "ann@x.org" }, { Email: "cid@x.org" }]],
    ["a join with an alias",         "SELECT c.Name, SUM(o.Total) AS s FROM Customers c LEFT JOIN Orders AS o ON o.CustomerId = c.CustomerId GROUP BY c.Name ORDER BY c.Name", [{ Name: "Ann", s: 12.13 }, { Name: "Bob", s: 1 }, { Name: "Cid", s: null }]],
    ["OUTER APPLY",                  "SELECT c.Name, x.Total FROM Customers c OUTER APPLY (SELECT TOP 1 Total FROM Orders o WHERE o.CustomerId = c.CustomerId ORDER BY Total DESC) x ORDER BY c.CustomerId", [{ Name: "Ann", Total: 7.13 }, { Name: "Bob", Total: 1 }, { Name: "Cid", Total: null }]],
    ["a common table and a window",  "WITH r AS (SELECT Name, ROW_NUMBER() OVER (ORDER BY Name DESC) AS n FROM Customers) SELECT Name FROM r WHERE n = 1", [{ Name: "Cid" }]],
    ["a recursive common table",     "WITH n AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM n WHERE i < 3) SELECT i FROM n", [{ i: 1 }, { i: 2 }, { i: 3 }]],
    ["OFFSET and FETCH",             "SELECT Name FROM Customers ORDER BY Name OFFSET 1 ROWS FETCH NEXT 1 ROWS ONLY",    [{ Name: "Bob" }]],
    ["IN, EXISTS and a subquery",    "SELECT Name FROM Customers c WHERE c.CustomerId IN (1, '2') AND EXISTS (SELECT * FROM Orders o WHERE o.CustomerId = c.CustomerId) AND (SELECT COUNT(*) FROM Orders o WHERE o.CustomerId = c.CustomerId) > 1", [{ Name: "Ann" }]],
    ["UNION and EXCEPT",             "SELECT 1 AS a UNION SELECT 2 EXCEPT SELECT 2",                                     [{ a: 1 }]],
    ["VALUES as a table",            "SELECT v.a, v.b FROM (VALUES (1, 'x'), (2, NULL)) AS v (a, b) WHERE v.b IS NOT NULL", [{ a: 1, b: "x" }]],
    ["integer division and +",       "SELECT 7 / 2 AS d, '1' + 2 AS n, 'a' + 'b' AS s, 7 % 4 AS m, 1.0 / 3 AS f",        [{ d: 3, n: 3, s: "ab", m: 3, f: 0.333333 }]],
    ["CASE, IIF and ISNULL",         "SELECT CASE WHEN 1 > 2 THEN 1 ELSE 2.5 END AS c, IIF(1 = 1, 'y', 'n') AS i, ISNULL(NULL, 'x') AS n", [{ c: 2.5, i: "y", n: "x" }]],
    ["text functions",               "SELECT LEN('ab  ') AS l, CHARINDEX('C', 'abc') AS i, STUFF('abcdef', 2, 3, 'X') AS s, REPLACE('aBc', 'b', 'z') AS r, PATINDEX('%[0-9]%', 'ab3') AS p", [{ l: 2, i: 3, s: "aXef", r: "azc", p: 3 }]],
    ["date functions",               "SELECT DATEDIFF(month, '2026-01-31', '2026-03-01') AS m, DATENAME(month, '2026-05-01') AS n, YEAR('2026-05-01') AS y, CONVERT(varchar(10), CAST('2026-03-04' AS date), 103) AS c, DATEPART(dw, '2026-11-28') AS w", [{ m: 2, n: "May", y: 2026, c: "04/03/2026", w: 7 }]],
    ["casts",                        "SELECT CAST(2.9 AS int) AS i, CAST('toolong' AS varchar(3)) AS s, TRY_CAST('x' AS int) AS t, CAST(5 AS bit) AS b, CONVERT(varchar(6), 0x0AFF, 1) AS h", [{ i: 2, s: "too", t: null, b: true, h: "0x0AFF" }]],
    ["DATALENGTH and LEN of bytes",  "SELECT LEN(0x0102) AS l, DATALENGTH(0x0102) AS b, DATALENGTH(1.5) AS d, DATALENGTH(GETDATE()) AS g, DATALENGTH(CAST(1 AS tinyint)) AS t", [{ l: 2, b: 2, d: 5, g: 8, t: 1 }]],
    ["days of a datetime",           "SELECT CAST(CAST('1900-01-03 12:00' AS datetime) AS int) AS i, CAST(CAST('1900-01-03 12:00' AS datetime) AS float) AS f, DATEDIFF(day, CAST('' AS datetime2), '1900-01-02') AS e", [{ i: 3, f: 2.5, e: 1 }]],
    ["types of number functions",    "SELECT SIGN(CAST(-3 AS smallint)) AS s, ABS(CAST(-3 AS smallmoney)) AS m, POWER(CAST(3 AS tinyint), 6) AS p", [{ s: -1, m: 3, p: 729 }]],
    ["UNION of several types",       "SELECT 1 AS a UNION ALL SELECT '2' UNION ALL SELECT NULL ORDER BY a",              [{ a: null }, { a: 1 }, { a: 2 }]],
    ["UNION with NULL first",        "SELECT NULL AS a UNION ALL SELECT CAST('b' AS char(2)) ORDER BY a",                [{ a: null }, { a: "b " }]],
    ["a number of TOP by a query",   "SELECT TOP (SELECT 1) Name FROM Customers ORDER BY Name",                          [{ Name: "Ann" }]],
    ["an alias in quotes, a hint",   "SELECT 'n'=c.Name FROM ..Customers c (NOLOCK) CROSS JOIN (VALUES (1)) v(q) WHERE c.CustomerId = v.q", [{ n: "Ann" }]],
    ["JSON_QUERY and JSON_VALUE",    `SELECT JSON_QUERY('{"a":{"b":[1,2]}}', '$.a.b') AS q, JSON_VALUE('{"a":{"b":[1,2]}}', 'lax $.a.b[1]') AS v, JSON_VALUE('{"a":{}}', '$.a') AS n`, [{ q: "[1,2]", v: "2", n: null }]],
    ["JSON_MODIFY",                  `SELECT JSON_MODIFY('{"a":1}', '$.b', 'x') AS s, JSON_MODIFY('{"a":1}', '$.a', JSON_QUERY('[1]')) AS q, JSON_MODIFY('{"a":[1]}', 'append $.a', 2) AS p, JSON_MODIFY('{"a":1,"b":2}', '$.a', NULL) AS n`, [{ s: '{"a": 1, "b": "x"}', q: '{"a": [1]}', p: '{"a": [1, 2]}', n: '{"b": 2}' }]],
    ["FORMAT of numbers",            "SELECT FORMAT(1234.567, 'N2') AS n, FORMAT(-5, 'D3') AS d, FORMAT(0.256, 'P1') AS p, FORMAT(1234567.891, '#,##0.00') AS c, FORMAT(7, '000') AS z, FORMAT(12.5, '0.##') AS o", [{ n: "1,234.57", d: "-005", p: "25.6 %", c: "1,234,567.89", z: "007", o: "12.5" }]],
    ["FORMAT of dates",              "SELECT FORMAT(CAST('2026-03-04 15:06:07.089' AS datetime2), 'yyyy-MM-dd hh:mm:ss.fff tt') AS t, FORMAT(CAST('2026-03-04' AS date), 'D') AS d", [{ t: "2026-03-04 03:06:07.089 PM", d: "Wednesday, March 4, 2026" }]],
    ["parts of names, STR, hashes",  "SELECT PARSENAME('[a].b.c', 3) AS p, STR(123.456, 8, 2) AS s, STR(12345, 3) AS o, CONVERT(varchar(10), HASHBYTES('SHA2_256', 'abc'), 2) AS h, COL_LENGTH('Customers', 'Name') AS l, IDENT_CURRENT('Orders') AS i, DATABASEPROPERTYEX('defaultdb', 'Status') AS b", [{ p: "a", s: "  123.46", o: "***", h: "BA7816BF8F", l: 100, i: 120, b: "ONLINE" }]],
    ["dates from parts",             "SELECT DATEDIFF(minute, '2026-01-02', SMALLDATETIMEFROMPARTS(2026, 1, 2, 3, 4)) AS s, DATEPART(microsecond, DATETIME2FROMPARTS(2026, 1, 2, 3, 4, 5, 67, 2)) AS d, DATEPART(hour, TIMEFROMPARTS(5, 2, 3, 4, 1)) AS t, DAY(DATETRUNC(month, CAST('2026-03-04' AS date))) AS m", [{ s: 184, d: 670_000, t: 5, m: 1 }]],
    ["bytes of a uniqueidentifier",  "SELECT CAST(0x6F9619FF8B86D011B42D00C04FC964FF AS uniqueidentifier) AS g, CONVERT(varchar(34), CAST(CAST('6F9619FF-8B86-D011-B42D-00C04FC964FF' AS uniqueidentifier) AS binary(16)), 1) AS b", [{ g: "FF19966F-868B-11D0-B42D-00C04FC964FF", b: "0xFF19966F868B11D0B42D00C04FC964FF" }]],
    ["digits of a real",             "SELECT CAST(CAST(123456.25 AS real) AS decimal(30,2)) AS d",                       [{ d: 123456.25 }]],
    ["minutes of a smalldatetime",   "SELECT DATEPART(minute, CAST('2026-01-01 10:00:29.998' AS smalldatetime)) AS a, DATEPART(minute, CAST('2026-01-01 10:00:29.999' AS smalldatetime)) AS b", [{ a: 0, b: 1 }]],
    ["STRING_SPLIT and STRING_AGG",  "SELECT STRING_AGG(value, '+') AS s FROM STRING_SPLIT('a,b', ',')",                 [{ s: "a+b" }]],
  ])("%s", async (_, sql, expected) => {
    expect(await rows(sql)).toEqual(expected);
  });
});

describe("changes of rows", () => {
  test("INSERT has its identity, also with OUTPUT", async () => {
    const { sets } = await batch(
      "INSERT INTO Orders (CustomerId, Total) OUTPUT inserted.OrderId, inserted.Total VALUES (3, 1.005); SELECT SCOPE_IDENTITY() AS id, @@ROWCOUNT AS n",
    );
    expect(sets).toEqual([[{ OrderId: 130, Total: 1.01 }], [{ id: 130, n: 1 }]]);
  });

  test("IDENTITY_INSERT takes values, and the identity continues after them", async () => {
    await batch("CREATE TABLE seeded (id int IDENTITY PRIMARY KEY, a int); INSERT INTO seeded (a) VALUES (1)");
    const sql =
      "SET IDENTITY_INSERT seeded ON; INSERT INTO seeded (id, a) VALUES (7, 2); SET IDENTITY_INSERT seeded OFF";
    expect(await errors(sql)).toEqual([]);
    expect(await rows("INSERT INTO seeded (a) OUTPUT inserted.id VALUES (3)")).toEqual([{ id: 8 }]);
  });

  test("UPDATE returns values before and after it", async () => {
    const sql = "UPDATE Orders SET Total += 1 OUTPUT deleted.Total AS old, inserted.Total AS new WHERE OrderId = 120";
    expect(await rows(sql)).toEqual([{ old: 1, new: 2 }]);
  });

  test("UPDATE and DELETE take a join", async () => {
    const update =
      "UPDATE o SET Total = 99 FROM Orders o JOIN Customers c ON c.CustomerId = o.CustomerId WHERE c.Name = 'BOB'";
    expect((await batch(update)).rowCount).toBe(1);
    const remove = "DELETE o FROM Orders o JOIN Customers c ON c.CustomerId = o.CustomerId WHERE c.Name = 'cid'";
    expect((await batch(remove)).rowCount).toBe(1);
    expect(await rows("SELECT Total FROM Orders WHERE CustomerId = 2")).toEqual([{ Total: 99 }]);
  });

  test("MERGE updates, inserts and deletes", async () => {
    await batch(
      "CREATE TABLE stock (item varchar(10) PRIMARY KEY, n int); INSERT INTO stock VALUES ('a', 1), ('b', 1)",
    );
    const { rowCount } = await batch(`
      MERGE INTO stock AS t USING (VALUES ('A', 5), ('c', 7)) AS s (item, n) ON t.item = s.item
      WHEN MATCHED THEN UPDATE SET n = t.n + s.n
      WHEN NOT MATCHED BY TARGET THEN INSERT (item, n) VALUES (s.item, s.n)
      WHEN NOT MATCHED BY SOURCE THEN DELETE;`);
    expect(rowCount).toBe(3);
    expect(await rows("SELECT * FROM stock ORDER BY item")).toEqual([
      { item: "a", n: 6 },
      { item: "c", n: 7 },
    ]);
  });

  test("temporary tables, table variables and SELECT INTO end with their scope", async () => {
    const sql =
      "SELECT Name INTO #t FROM Customers WHERE Balance > 5; DECLARE @t TABLE (Name nvarchar(50)); INSERT INTO @t SELECT Name FROM #t; SELECT Name FROM @t ORDER BY Name";
    expect(await rows(sql)).toEqual([{ Name: "Ann" }, { Name: "Bob" }]);
    expect(await errors("SELECT * FROM @t")).toEqual([1087]);
    expect(await rows("SELECT COUNT(*) AS n FROM #T")).toEqual([{ n: 2 }]);
    const other = await connectTds(tds);
    expect((await other.batch("SELECT * FROM #t")).errors).toEqual([208]);
    await other.close();
  });

  test("the rows are the same over the protocol of PostgreSQL", async () => {
    const { rows: found } = await tds.superuser.query("SELECT name, isactive FROM dbo.customers WHERE customerid = 1");
    expect(found).toEqual([{ name: "Ann", isactive: 1 }]);
  });
});

describe("definitions", () => {
  test("an identity descends, and NEXT VALUE FOR is a value and a default", async () => {
    const sql = `CREATE TABLE down (id int IDENTITY(5, -2), n int);
      INSERT down VALUES (1), (2); CREATE SEQUENCE numbers AS int START WITH 7;
      CREATE TABLE numbered (id int DEFAULT NEXT VALUE FOR numbers, n int); INSERT numbered (n) VALUES (1);
      SELECT id, (SELECT MAX(id) FROM numbered) AS m, NEXT VALUE FOR dbo.numbers AS v FROM down WHERE n = 2`;
    expect(await rows(sql)).toEqual([{ id: 3, m: 7, v: "8" }]);
  });

  test("a computed column has bytes of any length", async () => {
    expect(await errors("CREATE TABLE hashed (a varchar(10), h AS HASHBYTES('SHA2_256', a))")).toEqual([]);
  });

  test("a temporary procedure belongs to its session", async () => {
    const sql =
      "EXEC ('CREATE PROCEDURE #answer @a int OUTPUT AS SET @a = 42'); DECLARE @a bigint; EXEC #answer @a OUTPUT; SELECT @a AS a";
    expect(await rows(sql)).toEqual([{ a: "42" }]);
    const other = await connectTds(tds);
    expect((await other.batch("EXEC #answer 1")).errors).toEqual([2812]);
    await other.close();
  });

  test("error 8111: a key that may be NULL", async () => {
    expect(await errors("CREATE TABLE bad (a int NULL PRIMARY KEY)")).toEqual([8111]);
  });

  test("modules run AS CALLER, and a parameter may be declared NULL", async () => {
    const { sets } = await client.batch(
      "EXEC ('CREATE PROCEDURE as_caller @n int NULL WITH EXECUTE AS CALLER AS SELECT @n AS n'); EXEC as_caller 3",
    );
    expect(sets).toEqual([[{ n: 3 }]]);
  });

  test("ALTER TABLE adds, changes and drops columns and constraints", async () => {
    await batch("CREATE TABLE shape (a int NOT NULL, b varchar(5))");
    expect(
      await errors(
        "ALTER TABLE shape ADD c int NULL, Doubled AS (a * 2); ALTER TABLE shape ALTER COLUMN b nvarchar(9) NOT NULL",
      ),
    ).toEqual([]);
    expect(
      await errors(
        "ALTER TABLE shape ADD CONSTRAINT ck CHECK (a > 0); ALTER TABLE shape ADD CONSTRAINT df DEFAULT 5 FOR a",
      ),
    ).toEqual([]);
    await batch("INSERT INTO shape (b) VALUES ('x')");
    expect(await rows("SELECT * FROM shape")).toEqual([{ a: 5, b: "x", c: null, Doubled: 10 }]);
    expect(await errors("INSERT INTO shape (a, b) VALUES (0, 'x')")).toEqual([547]);
    expect(await errors("ALTER TABLE shape DROP CONSTRAINT ck; ALTER TABLE shape DROP COLUMN c")).toEqual([]);
    expect(await errors("INSERT INTO shape (a, b) VALUES (0, 'x')")).toEqual([]);
  });

  test("indexes have names in their tables, and a unique one has one NULL", async () => {
    await batch("CREATE TABLE one (a int); CREATE TABLE two (a int NULL, b int)");
    expect(
      await errors("CREATE INDEX ix ON one (a); CREATE UNIQUE INDEX ix ON two (a DESC) INCLUDE (b) WHERE a > 0"),
    ).toEqual([]);
    expect(
      await errors(
        "CREATE UNIQUE INDEX ux ON two (a); INSERT INTO two VALUES (NULL, 1); INSERT INTO two VALUES (NULL, 2)",
      ),
    ).toEqual([2601]);
    expect(await errors("DROP INDEX ix ON one; DROP INDEX two.ix")).toEqual([]);
    expect(await errors("DROP INDEX ix ON one")).toEqual([3701]);
  });

  test("schemas, views and sequences", async () => {
    const sql =
      "CREATE SCHEMA Sales; CREATE TABLE Sales.Deal (Id int); INSERT INTO Sales.Deal VALUES (1); CREATE SEQUENCE s START WITH 5";
    expect(await errors(sql)).toEqual([]);
    expect(await errors("CREATE VIEW Sales.Big AS SELECT Id * 2 AS Twice FROM Sales.Deal")).toEqual([]);
    expect(await rows("SELECT * FROM sales.big")).toEqual([{ Twice: 2 }]);
    expect(await errors("DROP VIEW Sales.Big; DROP TABLE Sales.Deal; DROP SCHEMA Sales; DROP SEQUENCE s")).toEqual([]);
  });
});

describe("transactions", () => {
  test("a failed statement does not end its transaction", async () => {
    const sql =
      "BEGIN TRAN; INSERT INTO Customers (Name, Email) VALUES ('Dan', 'dan@x.org'); INSERT INTO Customers (Name, Email) VALUES ('Ann', 'ann@x.org'); SELECT @@TRANCOUNT AS t, XACT_STATE() AS x; ROLLBACK; SELECT @@TRANCOUNT AS t, COUNT(*) AS n FROM Customers WHERE Name = 'dan'";
    const result = await batch(sql);
    expect(result.errors).toEqual([2627]);
    expect(result.sets).toEqual([[{ t: 1, x: 1 }], [{ t: 0, n: 0 }]]);
  });

  test("transactions nest by counting, and savepoints roll back in part", async () => {
    const sql =
      "CREATE TABLE nested (a int); BEGIN TRAN; INSERT INTO nested VALUES (1); SAVE TRAN s; BEGIN TRAN; INSERT INTO nested VALUES (2); SELECT @@TRANCOUNT AS t; ROLLBACK TRAN s; COMMIT; COMMIT; SELECT a FROM nested";
    expect((await batch(sql)).sets).toEqual([[{ t: 2 }], [{ a: 1 }]]);
    expect(await errors("COMMIT")).toEqual([3902]);
    expect(await errors("ROLLBACK")).toEqual([3903]);
  });

  test("the driver's own transactions commit and roll back", async () => {
    const { connection } = client;
    const call = (run: (done: (error: Error | null | undefined) => void) => void) =>
      new Promise<void>((resolve, reject) => run((error) => (error == null ? resolve() : reject(error))));
    await batch("CREATE TABLE driven (a int)");
    await call((done) => connection.beginTransaction(done, "one", 4));
    await batch("INSERT INTO driven VALUES (1)");
    await call((done) => connection.saveTransaction(done, "point"));
    await batch("INSERT INTO driven VALUES (2)");
    await call((done) => connection.rollbackTransaction(done, "point"));
    await call((done) => connection.commitTransaction(done));
    await call((done) => connection.beginTransaction(done));
    await batch("INSERT INTO driven VALUES (3)");
    await call((done) => connection.rollbackTransaction(done));
    expect(await rows("SELECT a FROM driven")).toEqual([{ a: 1 }]);
  });

  test("a failed SET leaves its transaction as it was", async () => {
    const sql =
      "CREATE TABLE after_set (a int); BEGIN TRAN; INSERT INTO after_set VALUES (1); SET LOCK_TIMEOUT 99999999999; COMMIT";
    expect(await errors(sql)).toEqual([50_000]);
    expect(await rows("SELECT a FROM after_set")).toEqual([{ a: 1 }]);
  });

  test("XACT_ABORT rolls back and ends the batch", async () => {
    const sql = "SET XACT_ABORT ON; BEGIN TRAN; INSERT INTO Customers (Name) VALUES (NULL); PRINT 'never'";
    const result = await batch(sql);
    expect([result.errors, result.messages]).toEqual([[515], []]);
    expect(await rows("SELECT @@TRANCOUNT AS t")).toEqual([{ t: 0 }]);
    await batch("SET XACT_ABORT OFF");
  });

  test("TRY and CATCH have the error, and THROW passes it on", async () => {
    const result = await batch(`
      BEGIN TRY
        BEGIN TRAN;
        INSERT INTO Customers (Name, Email) VALUES ('Dup', 'ANN@x.org');
        COMMIT;
      END TRY
      BEGIN CATCH
        SELECT ERROR_NUMBER() AS number, ERROR_SEVERITY() AS severity, ERROR_LINE() AS line, @@TRANCOUNT AS t;
        ROLLBACK;
        THROW;
      END CATCH
      SELECT 1 AS never`);
    expect(result.sets).toEqual([[{ number: 2627, severity: 14, line: 4, t: 1 }]]);
    expect(result.errors).toEqual([2627]);
  });
});

describe("errors", () => {
  // biome-ignore format: a table
  test.each([
    [102,   "SELECT 1 +"],
    [105,   "SELECT 'open"],
    [137,   "SELECT @missing"],
    [156,   "SELECT FROM Customers"],
    [191,   `SELECT ${"(".repeat(1_000)}1${")".repeat(1_000)}`],
    [195,   "SELECT nothing_of_the_kind(1)"],
    [195,   "SELECT constructor(1)"],
    [195,   "SET constructor ON"],
    [2715,  "DECLARE @a constructor"],
    [207,   "SELECT missing FROM Customers"],
    [208,   "SELECT * FROM missing"],
    [209,   "SELECT CustomerId FROM Customers c JOIN Orders o ON o.CustomerId = c.CustomerId"],
    [245,   "SELECT CAST('abc' AS int)"],
    [257,   "INSERT INTO Orders (CustomerId, [Order Date]) VALUES (1, 5)"],
    [262,   "CREATE DATABASE other"],
    [515,   "INSERT INTO Customers (Name) VALUES (NULL)"],
    [544,   "INSERT INTO Customers (CustomerId, Name) VALUES (9, 'x')"],
    [547,   "INSERT INTO Customers (Name, Email, Balance) VALUES ('x', 'neg@x.org', -1)"],
    [547,   "INSERT INTO Orders (CustomerId) VALUES (77)"],
    [911,   "USE other"],
    [2601,  "CREATE TABLE u2601 (a int); CREATE UNIQUE INDEX ux ON u2601 (a); INSERT INTO u2601 VALUES (1), (1)"],
    [2627,  "INSERT INTO Customers (Name, Email) VALUES ('x', 'ANN@x.org')"],
    [2628,  "INSERT INTO Customers (Name, Email) VALUES (REPLICATE('x', 51), 'long@x.org')"],
    [2714,  "CREATE TABLE Customers (a int)"],
    [2812,  "EXEC missing"],
    [3701,  "DROP TABLE missing"],
    [4104,  "SELECT x.Name FROM Customers c"],
    [7202,  "SELECT * FROM server.db.dbo.t"],
    [7601,  "SELECT * FROM CONTAINSTABLE(Customers, Name, 'x')"],
    [8115,  "SELECT CAST(3000000000 AS int)"],
    [8120,  "SELECT Name, COUNT(*) FROM Customers"],
    [8134,  "SELECT 1 / 0"],
    [8501,  "BEGIN DISTRIBUTED TRANSACTION"],
    [15281, "SELECT * FROM OPENROWSET('x', 'y', 'z')"],
    [50000, "RAISERROR('custom %s', 16, 1, 'text')"],
    [51000, "THROW 51000, 'thrown', 1"],
  ])("%i: %s", async (number, sql) => {
    expect(await errors(sql)).toEqual([number]);
  });

  test("a permission that is missing is error 229", async () => {
    await tds.superuser.query("CREATE TABLE dbo.secret (a int); REVOKE ALL ON dbo.secret FROM PUBLIC");
    expect(await errors("SELECT * FROM secret")).toEqual([229]);
  });

  test("DDL over the protocol of PostgreSQL changes what statements find", async () => {
    await tds.superuser.query("CREATE TABLE dbo.late (a int); GRANT SELECT ON dbo.late TO PUBLIC");
    expect(await rows("SELECT * FROM late")).toEqual([]);
    await tds.superuser.query("ALTER TABLE dbo.late ADD COLUMN b text; INSERT INTO dbo.late VALUES (1, 'x')");
    await expect.poll(() => rows("SELECT * FROM late")).toEqual([{ a: 1, b: "x" }]);
  });
});

describe("batches", () => {
  test("variables, IF, WHILE and PRINT", async () => {
    const sql =
      "DECLARE @i int = 0; WHILE @i < 5 BEGIN SET @i += 1; IF @i = 2 CONTINUE; IF @i = 4 BREAK; PRINT 'i=' + CAST(@i AS varchar(5)) END";
    expect((await batch(sql)).messages).toEqual(["i=1", "i=3"]);
    expect(await rows("DECLARE @n int; SELECT @n = MAX(CustomerId) FROM Orders; SELECT @n AS n")).toEqual([{ n: 2 }]);
    expect(await rows("EXEC ('SELECT ' + '1 AS one')")).toEqual([{ one: 1 }]);
  });

  test.each([
    ["a delay", "SELECT 2 AS two; WAITFOR DELAY '00:01:00'", /^SELECT 2/],
    ["a loop", "WHILE 1 = 1 BEGIN IF 1 = 2 PRINT 'x' END", /^SELECT \(1 = 2\)/],
    ["a statement", `SELECT COUNT_BIG(*) FROM ${endless}`, /^SELECT count\(\*\)/],
  ])("an attention ends %s, and the session continues", async (_, sql, running) => {
    const canceled = expect(client.batch(sql)).rejects.toThrow("Canceled");
    const activity = "SELECT query FROM pg_stat_activity WHERE usename = $1";
    await expect
      .poll(async () => (await tds.superuser.query<{ query: string }>(activity, [tds.user])).rows.at(-1)?.query)
      .toMatch(running);
    client.connection.cancel();
    await canceled;
    expect(await rows("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("an attention ends a statement at each of its steps", async () => {
    await batch("BEGIN TRANSACTION");
    for (let ticks = 0; ticks < 100; ticks += 1) {
      const canceled = expect(client.batch(`SELECT COUNT_BIG(*) FROM ${endless}`)).rejects.toThrow("Canceled");
      for (let tick = 0; tick < ticks; tick += 1) await setImmediate();
      client.connection.cancel();
      await canceled;
    }
    await batch("ROLLBACK TRANSACTION");
    expect(await rows("SELECT 1 AS one")).toEqual([{ one: 1 }]);
  });

  test("a result of many rows arrives complete", async () => {
    const found = await rows("SELECT value, REPLICATE('x', 100) AS text FROM GENERATE_SERIES(1, 20000)");
    expect([found?.length, found?.at(-1)]).toEqual([20_000, { value: 20_000, text: "x".repeat(100) }]);
  });
});

describe("catalog", () => {
  test("names are shown as they were written", async () => {
    const sql =
      "SELECT t.name, c.name AS col, ty.name AS type, c.max_length, c.is_identity FROM sys.tables t JOIN sys.columns c ON c.object_id = t.object_id JOIN sys.types ty ON ty.user_type_id = c.user_type_id WHERE t.name = 'customers' AND c.column_id <= 3 ORDER BY c.column_id";
    expect(await rows(sql)).toEqual([
      { name: "Customers", col: "CustomerId", type: "int", max_length: 4, is_identity: 1 },
      { name: "Customers", col: "Name", type: "nvarchar", max_length: 100, is_identity: 0 },
      { name: "Customers", col: "Email", type: "varchar", max_length: 100, is_identity: 0 },
    ]);
  });

  test("INFORMATION_SCHEMA describes tables, columns and keys", async () => {
    const columns =
      "SELECT COLUMN_NAME, DATA_TYPE, IS_NULLABLE, CHARACTER_MAXIMUM_LENGTH AS length FROM INFORMATION_SCHEMA.COLUMNS WHERE TABLE_SCHEMA = 'dbo' AND TABLE_NAME = 'ORDERS' ORDER BY ORDINAL_POSITION";
    expect(await rows(columns)).toEqual([
      { COLUMN_NAME: "OrderId", DATA_TYPE: "int", IS_NULLABLE: "NO", length: null },
      { COLUMN_NAME: "CustomerId", DATA_TYPE: "int", IS_NULLABLE: "NO", length: null },
      { COLUMN_NAME: "Total", DATA_TYPE: "decimal", IS_NULLABLE: "YES", length: null },
      { COLUMN_NAME: "Order Date", DATA_TYPE: "date", IS_NULLABLE: "YES", length: null },
    ]);
    const keys =
      "SELECT CONSTRAINT_NAME, CONSTRAINT_TYPE FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS WHERE TABLE_NAME = 'Customers' AND CONSTRAINT_TYPE <> 'CHECK' ORDER BY 1";
    expect(await rows(keys)).toEqual([
      { CONSTRAINT_NAME: "pk_customers", CONSTRAINT_TYPE: "PRIMARY KEY" },
      { CONSTRAINT_NAME: "uq_email", CONSTRAINT_TYPE: "UNIQUE" },
    ]);
  });

  test("OBJECT_ID, properties and catalog procedures", async () => {
    expect(
      await rows(
        "SELECT OBJECT_NAME(OBJECT_ID('dbo.CUSTOMERS', 'U')) AS name, OBJECT_ID('missing') AS no, DB_NAME() AS db, SERVERPROPERTY('EngineEdition') AS e",
      ),
    ).toEqual([{ name: "Customers", no: null, db: "defaultdb", e: "2" }]);
    expect((await rows("EXEC sp_tables 'cust%'"))?.map(({ TABLE_NAME }) => TABLE_NAME)).toEqual(["Customers"]);
    expect((await rows("EXEC sp_pkeys 'customers'"))?.map(({ COLUMN_NAME }) => COLUMN_NAME)).toEqual(["CustomerId"]);
    expect((await rows("SELECT name FROM master.sys.databases WHERE name = 'DEFAULTDB'"))?.length).toBe(1);
  });
});

describe("hostile batches", () => {
  test("random batches end in results or errors, and neither session nor process ends", async () => {
    const own = await connectTds(tds);
    const words =
      "SELECT FROM WHERE INSERT INTO VALUES UPDATE SET DELETE MERGE USING WHEN MATCHED THEN CREATE TABLE INDEX ALTER ADD DROP DECLARE IF ELSE BEGIN TRAN COMMIT ROLLBACK END TRY CATCH EXEC CASE CAST AS int NULL NOT IN LIKE AND OR EXISTS TOP OVER ORDER BY GROUP JOIN UNION OUTPUT @a #t t a b 1 2.5 1e5 0xFF 'x' N'y' [q] ( ) , . ; = + - * / < >".split(
        " ",
      );
    const tokens = fc.array(fc.constantFrom(...words), { maxLength: 15 }).map((list) => list.join(" "));
    const valid = fc.constantFrom(
      "SELECT 1",
      "CREATE TABLE #t (a int)",
      "INSERT INTO #t VALUES (1)",
      "BEGIN TRAN",
      "COMMIT",
      "ROLLBACK",
      "SELECT 1 / 0",
      "SELECT * FROM #t",
      "BEGIN TRY SELECT 1 / 0 END TRY BEGIN CATCH SELECT ERROR_NUMBER() END CATCH",
      "SET XACT_ABORT ON",
      "SAVE TRAN s",
      "ROLLBACK TRAN s",
      "DROP TABLE #t",
    );
    const text = fc.oneof(
      tokens,
      fc.array(valid, { maxLength: 6 }).map((list) => list.join("; ")),
      fc.string({ unit: "grapheme" }),
    );
    await fc.assert(
      fc.asyncProperty(text, async (sql) => {
        const { errors: numbers } = await own.batch(sql);
        expect(numbers.every((number) => number > 0)).toBe(true);
      }),
      { numRuns: 150 },
    );
    const { sets } = await own.batch("IF @@TRANCOUNT > 0 ROLLBACK; SELECT 1 AS one, @@TRANCOUNT AS t");
    expect(sets.at(-1)).toEqual([{ one: 1, t: 0 }]);
    await own.close();
  });

  test("names and texts with quotes stay names and texts", async () => {
    const name = `a"b'c];--`;
    const quoted = `[${name.replaceAll("]", "]]")}]`;
    await batch(
      `CREATE TABLE ${quoted} (${quoted} nvarchar(50)); INSERT INTO ${quoted} (${quoted}) VALUES ('\\''; DROP TABLE x --')`,
    );
    expect(await rows(`SELECT ${quoted} AS v FROM ${quoted} WHERE ${quoted} LIKE '%''%'`)).toEqual([
      { v: "\\'; DROP TABLE x --" },
    ]);
    expect(await errors(`DROP TABLE ${quoted}`)).toEqual([]);
  });

  test("a function of a user never stands in for one of a translation", async () => {
    await tds.superuser.query("CREATE FUNCTION dbo.rtrim(varchar) RETURNS text LANGUAGE sql AS $$ SELECT 'trap' $$");
    expect(await rows("DECLARE @a varchar(5) = 'a'; SELECT IIF(@a = 'a', 1, 0) AS isEqual")).toEqual([{ isEqual: 1 }]);
  });
});
