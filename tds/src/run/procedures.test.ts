import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient, TYPES } from "@holdfast/testing/servers/tds-client.ts";
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
  for (const text of texts) expect(await errors(text)).toEqual([]);
};

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  await create(
    "CREATE TABLE Orders (Id int IDENTITY PRIMARY KEY, Customer nvarchar(50) NOT NULL, Total money NOT NULL)",
    `
CREATE PROCEDURE dbo.AddOrder
  @Customer nvarchar(50),
  @Total money = 5,
  @Id int = NULL OUTPUT
WITH RECOMPILE AS
BEGIN
  SET NOCOUNT ON;
  IF @Total < 0 THROW 50010, 'The total is negative.', 1;
  INSERT INTO Orders (Customer, Total) VALUES (@Customer, @Total);
  SET @Id = SCOPE_IDENTITY();
  RETURN 7;
END`,
  );
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

describe("procedures", () => {
  test("take arguments by position and by name, have defaults, and return values and a status", async () => {
    const call = `
      DECLARE @id int, @status int;
      EXEC @status = addorder N'Ann', @id = @id OUTPUT;
      SELECT @id AS id, @status AS status`;
    expect(await rows(call)).toEqual([{ id: 1, status: 7 }]);
    await create("EXECUTE DBO.AddOrder @total = 2.5, @customer = 'Bob'", "AddOrder 'Cid', DEFAULT");
    expect(await rows("SELECT Customer, Total FROM Orders ORDER BY Id")).toEqual([
      { Customer: "Ann", Total: 5 },
      { Customer: "Bob", Total: 2.5 },
      { Customer: "Cid", Total: 5 },
    ]);
  });

  test("are called by RPC messages with typed parameters", async () => {
    const customer = ["Customer", TYPES.NVarChar, "Dan"] as const;
    for (const name of ["AddOrder", "[dbo].[AddOrder]", "dbo.AddOrder;1"]) {
      const { errors: found, output } = await client.call(name, [customer], [["Id", TYPES.Int, null]]);
      expect(found).toEqual([]);
      expect(output).toEqual({ Id: expect.any(Number) });
    }
    expect((await client.call("AddOrder")).errors).toEqual([201]);
    expect((await client.call("Absent")).errors).toEqual([2812]);
  });

  // biome-ignore format: a table
  test.each([
    ["a missing argument",              "EXEC AddOrder",                                              201],
    ["too many arguments",              "EXEC AddOrder 'a', 1, 2, 3",                                 8144],
    ["an unknown parameter",            "EXEC AddOrder @Other = 1",                                   8145],
    ["a parameter twice",               "EXEC AddOrder 'a', @customer = 'b'",                         8143],
    ["OUTPUT of an input parameter",    "DECLARE @c nvarchar(9); EXEC AddOrder @Customer = @c OUTPUT", 8162],
    ["a value of another type",         "EXEC AddOrder 'a', 'no money'",                              245],
    ["its own error",                   "EXEC AddOrder 'a', -1",                                      50010],
    ["an unknown procedure",            "EXEC Absent 1",                                              2812],
    ["an existing name",                "CREATE PROC AddOrder AS SELECT 1",                           2714],
    ["ALTER without a procedure",       "ALTER PROC Absent AS SELECT 1",                              208],
    ["DROP without a procedure",        "DROP PROCEDURE Absent",                                      3701],
    ["a definition that is not first",  "SELECT 1 AS one; CREATE PROCEDURE Late AS SELECT 1",         111],
    ["a syntax error in the body",      "CREATE PROCEDURE Broken AS SELECT FROM",                     156],
    ["an option without meaning",       "CREATE PROCEDURE Hidden WITH ENCRYPTION AS SELECT 1",        40517],
  ])("error of %s: %s", async (_, sql, number) => {
    expect(await errors(sql)).toEqual([number]);
  });

  test("an error is caught around the call, with the name of the procedure and its line", async () => {
    const text = `
      BEGIN TRY EXEC AddOrder 'a', -1; END TRY
      BEGIN CATCH SELECT ERROR_NUMBER() AS n, ERROR_PROCEDURE() AS name, ERROR_LINE() AS line; END CATCH`;
    expect(await rows(text)).toEqual([{ n: 50_010, name: "AddOrder", line: 9 }]);
  });

  test("an error outside of TRY continues with the next statement of the procedure", async () => {
    await create(
      "CREATE PROC Continues AS INSERT INTO Orders (Customer, Total) VALUES (NULL, 1); SELECT 'next' AS step",
    );
    const { errors: found, sets } = await batch("EXEC Continues");
    expect(found).toEqual([515]);
    expect(sets).toEqual([[{ step: "next" }]]);
  });

  test("calls nest up to 32 deep", async () => {
    await create(
      "CREATE PROC Deep @n int AS BEGIN DECLARE @m int = @n - 1; IF @n > 0 EXEC Deep @m ELSE SELECT 'end' AS step END",
    );
    expect(await rows("EXEC Deep 31")).toEqual([{ step: "end" }]);
    expect(await errors("EXEC Deep 32")).toEqual([217]);
  });

  test("variables, temporary tables and options end with the call", async () => {
    await create(
      "CREATE PROC Local AS SET NOCOUNT ON; SET XACT_ABORT ON; CREATE TABLE #t (a int); DECLARE @v int = 1; INSERT INTO #t VALUES (@v); SELECT a FROM #t",
      "CREATE PROC Twice AS EXEC Local; EXEC Local",
    );
    expect((await batch("EXEC Twice")).sets).toEqual([[{ a: 1 }], [{ a: 1 }]]);
    expect(await errors("SELECT a FROM #t")).toEqual([208]);
    expect(await errors("EXEC Local; SELECT @v")).toEqual([137]);
    const { rowCount } = await batch("EXEC Local; INSERT INTO Orders (Customer, Total) VALUES ('x', 1)");
    // The row of the SELECT, and that of the INSERT, which NOCOUNT would leave out.
    expect(rowCount).toBe(2);
  });

  test("SCOPE_IDENTITY() is that of the caller, @@IDENTITY that of the session, and @@NESTLEVEL the depth", async () => {
    await create(
      "CREATE PROC Inner2 AS INSERT INTO Orders (Customer, Total) VALUES ('inner', 1); SELECT @@NESTLEVEL AS depth",
    );
    const { sets } = await batch(`
      INSERT INTO Orders (Customer, Total) VALUES ('outer', 1);
      DECLARE @before decimal(38) = SCOPE_IDENTITY();
      EXEC Inner2;
      SELECT SCOPE_IDENTITY() - @before AS scope, @@IDENTITY - @before AS last, @@NESTLEVEL AS depth`);
    expect(sets).toEqual([[{ depth: 1 }], [{ scope: 0, last: 1, depth: 0 }]]);
  });

  test("names in the body are resolved when it runs", async () => {
    await create("CREATE PROC Deferred AS SELECT a FROM LaterTable");
    expect(await errors("EXEC Deferred")).toEqual([208]);
    await create("CREATE TABLE LaterTable (a int)");
    expect(await rows("EXEC Deferred")).toEqual([]);
  });

  test("a change by another session is used at the next call", async () => {
    const other = await connectTds(tds);
    await create("CREATE OR ALTER PROC Changed AS SELECT 1 AS a");
    const read = async () => (await other.batch("EXEC Changed")).sets;
    expect(await read()).toEqual([[{ a: 1 }]]);
    await create("ALTER PROCEDURE Changed AS SELECT 2 AS b");
    await expect.poll(read).toEqual([[{ b: 2 }]]);
    await create("DROP PROC Changed", "DROP PROC IF EXISTS Changed");
    await expect.poll(async () => (await other.batch("EXEC Changed")).errors).toEqual([2812]);
    await other.close();
  });

  test("the text is in the catalog as it was written", async () => {
    const text = "CREATE PROCEDURE [Odd Name] @p nvarchar(20) = N'it''s' AS -- $$ \\ ' ü\nSELECT @p + N'\\' AS v";
    await create(text);
    expect(await rows("EXEC [odd name]")).toEqual([{ v: "it's\\" }]);
    const modules = `SELECT p.name, m.definition FROM sys.procedures p JOIN sys.sql_modules m ON m.object_id = p.object_id
      WHERE p.object_id = OBJECT_ID('[Odd Name]')`;
    expect(await rows(modules)).toEqual([{ name: "Odd Name", definition: text }]);
    expect(await rows("SELECT COUNT(*) AS n FROM INFORMATION_SCHEMA.ROUTINES WHERE ROUTINE_NAME = 'AddOrder'")).toEqual(
      [{ n: 1 }],
    );
  });

  test("GRANT and REVOKE change who may use procedures and tables", async () => {
    await tds.superuser.query("CREATE ROLE clerk LOGIN PASSWORD 'a clerk''s password'");
    const clerk = await connectTds(tds, { authentication: { userName: "clerk", password: "a clerk's password" } });
    const asClerk = async (sql: string) => (await clerk.batch(sql)).errors;
    await create("CREATE PROC Granted AS SELECT 1 AS one", "REVOKE EXECUTE ON OBJECT::dbo.Granted FROM PUBLIC");
    await expect.poll(() => asClerk("EXEC Granted")).toEqual([229]);
    await create("GRANT EXEC ON Granted TO Clerk", "GRANT SELECT, INSERT (Customer, Total) ON Orders TO clerk");
    await expect.poll(() => asClerk("EXEC Granted")).toEqual([]);
    expect(await asClerk("INSERT INTO Orders (Customer, Total) VALUES ('by clerk', 1)")).toEqual([]);
    expect(await asClerk("DELETE FROM Orders")).toEqual([229]);
    await create("REVOKE SELECT ON Orders TO clerk CASCADE");
    await expect.poll(() => asClerk("SELECT Id FROM Orders")).toEqual([229]);
    expect(await errors("GRANT SELECT ON Orders TO nobody_here")).toEqual([15_151]);
    expect(await errors("GRANT SELECT ON Absent TO clerk")).toEqual([15_151]);
    expect(await errors("GRANT CONTROL ON Orders TO clerk")).toEqual([40_517]);
    expect(await errors("GRANT SELECT ON SCHEMA::dbo TO clerk")).toEqual([40_517]);
    expect(await errors("DENY SELECT ON Orders TO clerk")).toEqual([40_510]);
    await clerk.close();
  });

  test("privileges are PostgreSQL's, and its own clients get an error that says where to call it", async () => {
    await expect(tds.superuser.query("CALL dbo.addorder()")).rejects.toThrow("call it by a client of port 1433");
    await tds.superuser.query("REVOKE EXECUTE ON PROCEDURE dbo.addorder() FROM PUBLIC");
    await tds.superuser.query("ALTER PROCEDURE dbo.addorder() OWNER TO CURRENT_USER");
    await expect.poll(() => errors("EXEC AddOrder 'a'")).toEqual([229]);
    expect(await errors("ALTER PROC AddOrder AS SELECT 1")).not.toEqual([]);
    await tds.superuser.query(`ALTER PROCEDURE dbo.addorder() OWNER TO ${tds.user}`);
    await expect.poll(() => errors("EXEC AddOrder 'a'")).toEqual([]);
  });
});
