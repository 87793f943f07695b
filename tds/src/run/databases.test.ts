import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { silentLog } from "@holdfast/common/log.ts";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { installation } from "../catalog/install.ts";
import { defaultCollation } from "../types/collation.ts";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
});
afterAll(async () => {
  await postgresql?.stop();
});

const done = async (sql: string, on = client) => {
  const { errors, messages, sets } = await on.batch(sql);
  expect([errors, errors.length > 0 ? messages : []]).toEqual([[], []]);
  return sets;
};
const rows = async (sql: string, on = client) => (await done(sql, on)).at(-1);
const errors = async (sql: string, on = client) => (await on.batch(sql)).errors;
const open = (database: string) => connectTds(tds, { options: { database } });

describe.each(["single-db", "multi-db"] as const)("a service of the layout %s", (layoutMode) => {
  beforeAll(async () => {
    tds = await startTestTds(postgresql.url, silentLog, layoutMode);
    client = await connectTds(tds);
  });
  afterAll(async () => {
    await client?.close();
    await tds?.stop();
  });

  test("has the default database, and those of the system for views of the catalog", async () => {
    expect(await rows("SELECT DB_NAME() AS name, DB_ID() AS id, DB_ID('MASTER') AS master, DB_NAME(2) AS two")).toEqual(
      [{ name: "defaultdb", id: 5, master: 1, two: "tempdb" }],
    );
    expect(await rows("SELECT name FROM master.sys.databases ORDER BY database_id")).toEqual(
      ["master", "tempdb", "model", "msdb", "defaultdb"].map((name) => ({ name })),
    );
    expect((await rows("EXEC sp_databases"))?.map(({ DATABASE_NAME: name }) => name)).toEqual([
      "defaultdb",
      "master",
      "model",
      "msdb",
      "tempdb",
    ]);
    expect(await rows("SELECT HAS_DBACCESS('defaultdb') AS own, HAS_DBACCESS('nowhere') AS none")).toEqual([
      { own: 1, none: null },
    ]);
    for (const name of ["msdb", "model", "tempdb"]) await rows(`SELECT name FROM ${name}.sys.tables`);
    for (const database of ["", "master", "DefaultDB"]) {
      const session = await open(database);
      await rows("SELECT 1 AS one", session);
      await session.close();
    }
    await expect(open("nowhere")).rejects.toThrow('Cannot open database "nowhere" requested by the login');
  });

  test("resolves names in the schemas of the current database", async () => {
    await done("CREATE SCHEMA Shop");
    await done(`CREATE TABLE Items (Id int IDENTITY PRIMARY KEY, Name nvarchar(20));
      CREATE TABLE Shop.Items (Id int PRIMARY KEY, ItemId int REFERENCES Items (Id));
      INSERT INTO Items (Name) VALUES ('one'); INSERT INTO shop.items VALUES (7, 1);
      SELECT 1 AS one INTO #Temporary`);
    expect(
      await rows("SELECT s.Id, i.Name FROM defaultdb.Shop.Items s JOIN DEFAULTDB..Items i ON i.Id = s.ItemId"),
    ).toEqual([{ Id: 7, Name: "one" }]);
    expect(await rows("SELECT one FROM tempdb..#Temporary")).toEqual([{ one: 1 }]);
    const tables = `SELECT TABLE_CATALOG AS c, TABLE_SCHEMA AS s, TABLE_NAME AS t FROM INFORMATION_SCHEMA.TABLES ORDER BY 2, 3`;
    expect(await rows(tables)).toEqual([
      { c: "defaultdb", s: "dbo", t: "Items" },
      { c: "defaultdb", s: "shop", t: "Items" },
    ]);
    expect(
      await rows(
        "SELECT name, SCHEMA_NAME(schema_id) AS s FROM sys.objects WHERE object_id IN (OBJECT_ID('dbo.items'), OBJECT_ID('defaultdb.shop.items')) ORDER BY 2",
      ),
    ).toEqual([
      { name: "Items", s: "dbo" },
      { name: "Items", s: "shop" },
    ]);
    expect(await rows("SELECT OBJECT_ID('nowhere.items') AS a, SCHEMA_ID('nowhere') AS b")).toEqual([
      { a: null, b: null },
    ]);
    expect(await rows("SELECT COUNT(*) AS n FROM sys.foreign_key_columns")).toEqual([{ n: 1 }]);
    expect(await errors("CREATE TABLE nowhere.t (a int)")).toEqual([2760]);
    await done("DROP TABLE Shop.Items; DROP TABLE Items; DROP SCHEMA Shop");
  });
});

describe("the layout single-db", () => {
  beforeAll(async () => {
    tds = await startTestTds(postgresql.url);
    client = await connectTds(tds);
  });
  afterAll(async () => {
    await client?.close();
    await tds?.stop();
  });

  // biome-ignore format: a table
  test.each([
    ["CREATE DATABASE other",         262],
    ["DROP DATABASE IF EXISTS other", 262],
    ["USE other",                     911],
    ["SELECT * FROM other.dbo.t",     911],
  ])("refuses %s and names the layout", async (sql, number) => {
    const texts: string[] = [];
    const listen = ({ message }: { readonly message: string }) => texts.push(message);
    client.connection.on("errorMessage", listen);
    expect(await errors(sql)).toEqual([number]);
    client.connection.off("errorMessage", listen);
    expect(texts.join(" ")).toContain("single-db");
  });

  test("accepts USE of its database and of those of the system, and stays", async () => {
    expect(await rows("USE defaultdb; USE master; SELECT DB_NAME() AS name")).toEqual([{ name: "defaultdb" }]);
  });
});

describe("the layout multi-db", () => {
  beforeAll(async () => {
    tds = await startTestTds(postgresql.url, silentLog, "multi-db");
    client = await connectTds(tds);
    await done(
      "CREATE DATABASE Sales ON PRIMARY (NAME = 'a', FILENAME = 'b') LOG ON (NAME = 'c'); CREATE DATABASE stock_1",
    );
    await done(`USE sales; CREATE TABLE Orders (Id int PRIMARY KEY, ItemId int NOT NULL, Total money);
      INSERT INTO Orders VALUES (1, 10, 5), (2, 20, 7)`);
    await done(`USE stock_1; CREATE TABLE Items (Id int PRIMARY KEY, Name nvarchar(20));
      INSERT INTO Items VALUES (10, 'ten'), (20, 'twenty')`);
    await done("USE defaultdb");
  });
  afterAll(async () => {
    await client?.close();
    await tds?.stop();
  });

  test("messages of violated constraints name the database", async () => {
    const session = await open("sales");
    const messages: string[] = [];
    session.connection.on("errorMessage", ({ message }: { message: string }) => messages.push(message));
    await done("CREATE TABLE Checked (n int CONSTRAINT CK_n CHECK (n > 0))", session);
    expect(await errors("INSERT Checked VALUES (0)", session)).toEqual([547]);
    expect(await errors("USE stock_1; INSERT sales.dbo.Checked VALUES (0)", session)).toEqual([547]);
    const text = (database: string) =>
      `The INSERT statement conflicted with the CHECK constraint "ck_n". The conflict occurred in database "${database}", table "dbo.checked".`;
    expect(messages).toEqual([text("Sales"), text("sales")]);
    await done("DROP TABLE sales.dbo.Checked", session);
    await session.close();
  });

  test("USE changes the current database and tells the client", async () => {
    const session = await open("SALES");
    expect(await rows("SELECT DB_NAME() AS name, COUNT(*) AS n FROM Orders", session)).toEqual([
      { name: "Sales", n: 2 },
    ]);
    const changes: unknown[] = [];
    session.connection.on("databaseChange", (name) => changes.push(name));
    expect(await rows("USE [STOCK_1]; SELECT DB_NAME() AS name, COUNT(*) AS n FROM Items", session)).toEqual([
      { name: "stock_1", n: 2 },
    ]);
    expect(changes).toEqual(["stock_1"]);
    expect(await errors("SELECT * FROM Orders", session)).toEqual([208]);
    expect(await errors("USE nowhere", session)).toEqual([911]);
    expect(await rows("USE master; SELECT DB_NAME() AS name", session)).toEqual([{ name: "master" }]);
    expect(await errors("CREATE TABLE t (a int)", session)).toEqual([2760]);
    expect(await errors("CREATE SCHEMA s", session)).toEqual([262]);
    await session.close();
  });

  test("USE in a text lasts until its end, and a rollback does not undo it", async () => {
    const session = await open("defaultdb");
    const tables = "SELECT name FROM sys.tables ORDER BY name";
    expect(await rows("EXEC('USE Sales; SELECT DB_NAME() AS name'); SELECT DB_NAME() AS name", session)).toEqual([
      { name: "defaultdb" },
    ]);
    expect(await rows(tables, session)).toEqual([]);
    await done("BEGIN TRAN; USE Sales; ROLLBACK", session);
    expect(await rows(tables, session)).toEqual([{ name: "Orders" }]);
    await done("BEGIN TRAN; SAVE TRAN a; USE stock_1; ROLLBACK TRAN a; COMMIT", session);
    expect(await rows(tables, session)).toEqual([{ name: "Items" }]);
    await session.close();
  });

  test("a database is entered in a transaction that cannot be committed", async () => {
    const session = await open("defaultdb");
    const sql = `SET XACT_ABORT ON; BEGIN TRAN; BEGIN TRY SELECT 1 / 0 AS x END TRY
      BEGIN CATCH USE Sales; ROLLBACK; SELECT DB_NAME() AS name, COUNT(*) AS n FROM sys.tables END CATCH`;
    expect(await rows(sql, session)).toEqual([{ name: "Sales", n: 1 }]);
    await session.close();
  });

  test("three-part names read and change tables of other databases", async () => {
    expect(
      await rows(`SELECT o.Id, i.Name FROM Sales.dbo.Orders o JOIN stock_1..Items i ON i.Id = o.ItemId
        WHERE o.Total > (SELECT MIN(Total) FROM SALES..ORDERS)`),
    ).toEqual([{ Id: 2, Name: "twenty" }]);
    await done("INSERT INTO Sales.dbo.Orders SELECT 3, Id, 9 FROM stock_1.dbo.Items WHERE Id = 10");
    await done("UPDATE Sales..Orders SET Total = 1 WHERE Id = 3; DELETE FROM Sales..Orders WHERE Id = 3");
    await done("SELECT Id INTO stock_1.dbo.Copies FROM Sales.dbo.Orders");
    expect(await rows("SELECT COUNT(*) AS n FROM stock_1..Copies")).toEqual([{ n: 2 }]);
    await done("DROP TABLE stock_1.dbo.Copies");
    expect(await errors("SELECT * FROM nowhere.dbo.Orders")).toEqual([208]);
    expect(await errors("SELECT * FROM a.Sales.dbo.Orders")).toEqual([7202]);
  });

  test("views of the catalog describe one database", async () => {
    expect(await rows("SELECT name FROM sys.tables")).toEqual([]);
    expect(await rows("SELECT name FROM Sales.sys.tables")).toEqual([{ name: "Orders" }]);
    expect(
      await rows(
        "SELECT TABLE_CATALOG AS c, TABLE_SCHEMA AS s, COLUMN_NAME AS n FROM stock_1.INFORMATION_SCHEMA.COLUMNS ORDER BY 3",
      ),
    ).toEqual([
      { c: "stock_1", s: "dbo", n: "Id" },
      { c: "stock_1", s: "dbo", n: "Name" },
    ]);
    expect(
      await rows("SELECT a.name AS a, b.name AS b FROM Sales.sys.tables a CROSS JOIN stock_1.sys.tables b"),
    ).toEqual([{ a: "Orders", b: "Items" }]);
    expect(
      await rows("SELECT OBJECT_ID('Orders') AS a, CASE WHEN OBJECT_ID('Sales..Orders') > 0 THEN 1 END AS b"),
    ).toEqual([{ a: null, b: 1 }]);
    expect(await rows("SELECT name FROM sys.databases WHERE database_id > 4 ORDER BY name")).toEqual(
      ["defaultdb", "Sales", "stock_1"].map((name) => ({ name })),
    );
    expect(await rows("SELECT DB_NAME(DB_ID('sales')) AS name, DB_ID('nowhere') AS id")).toEqual([
      { name: "Sales", id: null },
    ]);
  });

  test("procedures, functions, views and triggers belong to their database", async () => {
    const session = await open("Sales");
    await done(
      "CREATE PROCEDURE Count_Orders @n int OUTPUT AS SELECT @n = COUNT(*) FROM Orders; SELECT DB_NAME() AS name",
      session,
    );
    await done(
      "CREATE FUNCTION Twice (@a int) RETURNS int AS BEGIN RETURN @a * (SELECT COUNT(*) FROM Orders) END",
      session,
    );
    await done("CREATE VIEW Totals AS SELECT SUM(Total) AS total FROM Orders", session);
    await done("CREATE VIEW OwnTables AS SELECT name FROM sys.tables", session);
    await done("CREATE TABLE Log (n int)", session);
    await done(
      "CREATE TRIGGER Logged ON Orders AFTER INSERT AS INSERT INTO Log SELECT COUNT(*) FROM inserted",
      session,
    );
    expect(
      await rows("DECLARE @n int; EXEC Sales.dbo.Count_Orders @n OUTPUT; SELECT @n AS n, DB_NAME() AS own"),
    ).toEqual([{ n: 2, own: "defaultdb" }]);
    expect((await done("EXEC Sales..Count_Orders 0"))[0]).toEqual([{ name: "Sales" }]);
    expect(await rows("EXEC Sales.dbo.sp_executesql N'SELECT COUNT(*) AS n, DB_NAME() AS name FROM Orders'")).toEqual([
      { n: 2, name: "Sales" },
    ]);
    expect(await errors("EXEC Count_Orders 0")).toEqual([2812]);
    expect(await rows("SELECT Sales.dbo.Twice(4) AS n, (SELECT total FROM Sales..Totals) AS t")).toEqual([
      { n: 8, t: 12 },
    ]);
    expect(await rows("SELECT name FROM Sales.dbo.OwnTables ORDER BY name")).toEqual([
      { name: "Log" },
      { name: "Orders" },
    ]);
    // A client of PostgreSQL's protocol fires the trigger, whose names are those of its database.
    await tds.superuser.query("INSERT INTO sales_dbo.orders VALUES (4, 10, 1), (5, 10, 1)");
    await done("INSERT INTO Sales..Orders VALUES (6, 10, 1)");
    expect(await rows("SELECT n FROM Log ORDER BY n", session)).toEqual([{ n: 1 }, { n: 2 }]);
    await done("DELETE FROM Orders WHERE Id > 2", session);
    for (const sql of ["CREATE VIEW Sales.dbo.v AS SELECT 1 AS a", "CREATE PROCEDURE Sales.dbo.p AS SELECT 1"])
      expect(await errors(sql)).toEqual([166]);
    expect(await errors("CREATE FUNCTION Sales.dbo.f () RETURNS int AS BEGIN RETURN 1 END")).toEqual([166]);
    expect(await errors("CREATE TRIGGER t ON Sales.dbo.Orders AFTER INSERT AS PRINT 'x'")).toEqual([2108]);
    expect(await errors("CREATE TABLE t (a int REFERENCES Sales.dbo.Orders (Id))")).toEqual([1763]);
    expect(await errors("CREATE PROCEDURE uses AS USE Sales")).toEqual([]);
    expect(await errors("EXEC uses")).toEqual([154]);
    await session.close();
  });

  test("types belong to their database", async () => {
    const session = await open("Sales");
    const declared = "DECLARE @codes dbo.Codes; INSERT INTO @codes VALUES (7); SELECT * FROM @codes";
    await done("CREATE TYPE Codes AS TABLE (Code int); CREATE TYPE Label FROM nvarchar(10)", session);
    expect(await rows(declared, session)).toEqual([{ Code: 7 }]);
    expect(await errors("USE stock_1; DECLARE @label dbo.Label", session)).toEqual([2715]);
    await done("CREATE TYPE Codes AS TABLE (Number bigint)", session);
    expect(await rows(declared, session)).toEqual([{ Number: "7" }]);
    const own = "SELECT name FROM sys.types WHERE is_user_defined = 1 ORDER BY name";
    expect(await rows(own, session)).toEqual([{ name: "Codes" }]);
    expect(await rows(`USE Sales; ${own}`, session)).toEqual([{ name: "Codes" }, { name: "Label" }]);
    await done("DROP TYPE Codes; DROP TYPE Label; USE stock_1; DROP TYPE Codes", session);
    await session.close();
  });

  test("a failed, repeated or premature statement about databases has its number", async () => {
    expect(await errors("CREATE DATABASE SALES")).toEqual([1801]);
    expect(await errors("CREATE DATABASE tempdb")).toEqual([1801]);
    expect(await errors("CREATE DATABASE x COLLATE Latin1_General_BIN")).toEqual([40517]);
    expect(await errors("BEGIN TRAN; CREATE DATABASE x")).toEqual([226]);
    await done("ROLLBACK");
    expect(await errors("DROP DATABASE nowhere")).toEqual([3701]);
    await done("DROP DATABASE IF EXISTS nowhere");
    expect(await errors("DROP DATABASE defaultdb")).toEqual([3708]);
    expect(await errors("DROP DATABASE master")).toEqual([3708]);
    expect(await errors("USE Sales; DROP DATABASE Sales")).toEqual([3702]);
    expect(await errors("USE defaultdb; DROP SCHEMA dbo")).toEqual([15150]);
  });

  test("DROP DATABASE drops its schemas only, and none that another database uses", async () => {
    await done("CREATE DATABASE old; CREATE DATABASE old_one; USE old");
    await done("CREATE SCHEMA parts");
    await done("CREATE TABLE parts.t (a int); CREATE TABLE t (a int); USE old_one; CREATE TABLE kept (a int)");
    await done("CREATE VIEW uses AS SELECT a FROM old.parts.t");
    await done("USE defaultdb");
    expect(await errors("DROP DATABASE old")).toEqual([3729]);
    await done("USE old_one; DROP VIEW uses; USE defaultdb; DROP DATABASE old");
    expect(await rows("SELECT name FROM old_one.sys.tables")).toEqual([{ name: "kept" }]);
    expect(await errors("USE old")).toEqual([911]);
    await done("DROP DATABASE OLD_ONE");
    expect((await tds.superuser.query("SELECT nspname FROM pg_namespace WHERE nspname LIKE 'old%'")).rows).toEqual([]);
  });

  test.each([
    ["quotes", `it's "so" ]] x`],
    ["Unicode", "Größe 数据库 😀"],
    ["64 bytes and more", "Lang_".repeat(20)],
    ["128 characters", "ü".repeat(128)],
    ["underscores", "__a__"],
    ["a schema of the platform", "holdfast"],
    ["a prefix of PostgreSQL", "pg"],
    ["a prefix of the catalog", "information"],
  ])("a database may have a name with %s", async (_, written) => {
    const name = written.replaceAll("]]", "]");
    const session = await open("defaultdb");
    await done(
      `CREATE DATABASE [${written}]; USE [${written}]; CREATE TABLE t (a int); INSERT INTO t VALUES (1)`,
      session,
    );
    expect(
      await rows(
        "SELECT DB_NAME() AS name, TABLE_CATALOG AS c, TABLE_SCHEMA AS s FROM INFORMATION_SCHEMA.TABLES",
        session,
      ),
    ).toEqual([{ name, c: name, s: "dbo" }]);
    expect(await rows(`SELECT a FROM [${written}].dbo.t`)).toEqual([{ a: 1 }]);
    expect(await rows(`SELECT COUNT(*) AS n FROM sys.databases WHERE name = N'${name.replaceAll("'", "''")}'`)).toEqual(
      [{ n: 1 }],
    );
    const literal = `N'${name.replaceAll(/[^ß]/g, (letter) => letter.toUpperCase()).replaceAll("'", "''")}'`;
    expect(await rows(`SELECT CASE WHEN DB_ID(${literal}) = DB_ID() THEN 1 END AS same`, session)).toEqual([
      { same: 1 },
    ]);
    const again = await open(name);
    expect(await rows("SELECT a FROM t", again)).toEqual([{ a: 1 }]);
    await again.close();
    await done(`USE defaultdb; DROP DATABASE [${written}]`, session);
    await session.close();
  });

  test("no name reaches a schema of the platform or of PostgreSQL", async () => {
    for (const sql of [
      "SELECT * FROM holdfast_tsql.spelling",
      "SELECT * FROM holdfast.tsql.spelling",
      "SELECT * FROM pg_catalog.pg_class",
      "SELECT * FROM pg.catalog.pg_class",
      "SELECT * FROM [pg_catalog\0].dbo.pg_class",
      "SELECT * FROM information.[schema].tables",
    ])
      expect(await errors(sql), sql).toEqual([expect.toSatisfy((number) => number === 208 || number === 102)]);
    expect(await errors("CREATE DATABASE [a\0b]")).toEqual([102]);
  });

  test("a new connection of a pool begins in its own database", async () => {
    const session = await open("Sales");
    await done("USE stock_1", session);
    await new Promise<void>((resolve, reject) =>
      session.connection.reset((error) => (error ? reject(error) : resolve())),
    );
    expect(
      await rows("SELECT DB_NAME() AS name, COUNT(*) AS n FROM sys.tables WHERE name = 'Orders'", session),
    ).toEqual([{ name: "Sales", n: 1 }]);
    await session.close();
  });
});

test("views of users remain when a newer front end replaces the catalog's", async () => {
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  onTestFinished(async () => {
    await client.close();
    await tds.stop();
  });
  const install = () =>
    tds.superuser.query(
      installation({
        layoutMode: "single-db",
        collation: defaultCollation,
        defaultDatabase: "defaultdb",
        administrators: tds.user,
      }),
    );
  // Columns of an earlier front end have no collation.
  await tds.superuser.query(`
    DROP VIEW sys.indexes CASCADE;
    CREATE VIEW sys.indexes AS SELECT relname::varchar(128) AS name, oid::int8::int AS object_id FROM pg_class WHERE relkind = 'i';
    GRANT SELECT ON sys.indexes TO PUBLIC`);
  await done("CREATE VIEW counted AS SELECT COUNT(*) AS n FROM sys.indexes");
  await install();
  await install();
  expect(await rows("SELECT CASE WHEN n > 0 THEN 1 END AS has FROM counted")).toEqual([{ has: 1 }]);
  await done("CREATE TABLE t (a int PRIMARY KEY)");
  expect(await rows("SELECT COUNT(*) AS n FROM sys.indexes WHERE is_primary_key = 1")).toEqual([{ n: 1 }]);
  const earlier = "SELECT count(*)::int AS n FROM pg_class WHERE relnamespace = 'holdfast_tsql_earlier'::regnamespace";
  expect((await tds.superuser.query(earlier)).rows).toEqual([{ n: 1 }]);
});
