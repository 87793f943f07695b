import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
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

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  const created = `
    CREATE TABLE Items (Id int IDENTITY PRIMARY KEY, Name nvarchar(50) NOT NULL CONSTRAINT uq_name UNIQUE, Price money NULL,
      CONSTRAINT ck_price CHECK (Price > 0));
    CREATE TABLE Parts (Id int PRIMARY KEY, Item int CONSTRAINT fk_item REFERENCES Items (Id), Code varchar(10));
    CREATE UNIQUE INDEX ix_Code ON Parts (Code DESC)`;
  expect(await errors(created)).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

describe("OUTPUT", () => {
  test("INTO inserts the rows of a change into a table", async () => {
    const inserted = `DECLARE @o TABLE (Id int, Name nvarchar(50));
      INSERT INTO Items (Name, Price) OUTPUT inserted.Id, inserted.Name INTO @o VALUES (N'a', 1), (N'b', 2);
      SELECT *, @@ROWCOUNT AS c, SCOPE_IDENTITY() AS i FROM @o ORDER BY Id`;
    expect(await rows(inserted)).toEqual([
      { Id: 1, Name: "a", c: 2, i: 2 },
      { Id: 2, Name: "b", c: 2, i: 2 },
    ]);
    const changed = `CREATE TABLE #log (Old money, New money, Who varchar(10) DEFAULT 'x');
      UPDATE Items SET Price = Price * 2 OUTPUT deleted.Price, inserted.Price INTO #log (Old, New) WHERE Name = 'a';
      DELETE FROM Items OUTPUT deleted.Price, NULL INTO #log (Old, New) WHERE Name = 'b';
      SELECT Old, New, Who FROM #log ORDER BY Old DESC`;
    expect(await rows(changed)).toEqual([
      { Old: 2, New: null, Who: "x" },
      { Old: 1, New: 2, Who: "x" },
    ]);
    expect(await errors("DECLARE @o TABLE (a int, b int); DELETE Items OUTPUT deleted.Id INTO @o")).toEqual([213]);
  });

  test("of MERGE has the action and the rows", async () => {
    const merge = `MERGE INTO Items WITH (HOLDLOCK) AS t USING (VALUES (N'a', 5), (N'c', 6)) AS s (Name, Price) ON t.Name = s.Name
      WHEN MATCHED THEN UPDATE SET t.Price = s.Price
      WHEN NOT MATCHED THEN INSERT (Name, Price) VALUES (s.Name, s.Price)
      OUTPUT $action, inserted.*, s.Price AS given;`;
    expect((await rows(merge))?.map((row) => ({ ...row, Id: 0 }))).toEqual([
      { $action: "UPDATE", Id: 0, Name: "a", Price: 5, given: 5 },
      { $action: "INSERT", Id: 0, Name: "c", Price: 6, given: 6 },
    ]);
    const removed = `DECLARE @o TABLE (Action nvarchar(10), Name nvarchar(50), Other nvarchar(50));
      MERGE Items AS t USING (SELECT 'c' AS Name) AS s ON t.Name = s.Name WHEN MATCHED THEN DELETE
      OUTPUT $action, deleted.Name, inserted.Name INTO @o; SELECT * FROM @o`;
    expect(await rows(removed)).toEqual([{ Action: "DELETE", Name: "c", Other: null }]);
    const previous =
      "MERGE Items AS t USING (SELECT 1 AS a) AS s ON t.Id = s.a WHEN MATCHED THEN UPDATE SET Price = 1 OUTPUT deleted.Id;";
    expect(await errors(previous)).toEqual([40_517]);
  });
});

describe("messages", () => {
  // biome-ignore format: a table
  test.each([
    ["INSERT INTO Items (Name) VALUES ('A')",              "Violation of UNIQUE KEY constraint 'uq_name'. Cannot insert duplicate key in object 'dbo.items'. The duplicate key value is (A)."],
    ["INSERT INTO Items (Name) VALUES (NULL)",             "Cannot insert the value NULL into column 'name', table 'dbo.items'; column does not allow nulls. INSERT fails."],
    ["UPDATE Items SET Price = -1",                        "The UPDATE statement conflicted with the CHECK constraint \"ck_price\". The conflict occurred in database \"defaultdb\", table \"dbo.items\"."],
    ["INSERT INTO Parts VALUES (1, 99, 'x')",              "The INSERT statement conflicted with the FOREIGN KEY constraint \"fk_item\". The conflict occurred in database \"defaultdb\", table \"dbo.items\", column 'item'."],
    ["INSERT INTO Parts VALUES (2, 1, 'y'); DELETE Items", "The DELETE statement conflicted with the REFERENCE constraint \"fk_item\". The conflict occurred in database \"defaultdb\", table \"dbo.parts\", column 'id'."],
    ["INSERT INTO Parts VALUES (3, 1, 'Y')",               "Cannot insert duplicate key row in object 'dbo.parts' with unique index 'ix_code'. The duplicate key value is (Y)."],
    ["INSERT INTO Parts VALUES (2, 1, 'z')",               "Violation of PRIMARY KEY constraint 'parts_pkey'. Cannot insert duplicate key in object 'dbo.parts'. The duplicate key value is (2)."],
  ])("%s", async (sql, message) => {
    const texts: string[] = [];
    const add = (error: { message: string }) => texts.push(error.message);
    client.connection.on("errorMessage", add);
    await client.batch(sql);
    client.connection.off("errorMessage", add);
    expect(texts).toEqual([message]);
  });
});

describe("procedures of the catalog", () => {
  test("rename tables, columns, indexes and constraints", async () => {
    expect(
      await errors(
        "CREATE TABLE dbo.Old (Id int, OldName int, CONSTRAINT uq_old UNIQUE (Id)); CREATE INDEX ix_old ON Old (OldName)",
      ),
    ).toEqual([]);
    const renames = [
      "EXEC sp_rename 'dbo.Old.OldName', 'NewName', 'COLUMN'",
      "EXEC sp_rename [Old], [Renamed]",
      "EXEC sp_rename N'Renamed.ix_old', N'ix_new', N'INDEX'",
      'EXEC sp_rename "defaultdb.dbo.Renamed.Id", "Key"',
      "EXEC sp_rename 'uq_old', 'uq_new'",
    ];
    for (const sql of renames) expect(await errors(sql), sql).toEqual([]);
    const { columns } = await client.batch("SELECT * FROM Renamed");
    expect(columns.flat().map((each) => each.split(" ")[0])).toEqual(["Key", "NewName"]);
    expect(
      (await rows("EXEC sys.sp_helpindex @objname = N'[Renamed]'"))?.map((row) => [
        row["index_name"],
        row["index_keys"],
      ]),
    ).toEqual([
      ["ix_new", "NewName"],
      ["uq_new", "Key"],
    ]);
    expect(await errors("DROP INDEX ix_new ON Renamed")).toEqual([]);
    expect(await errors("EXEC sp_rename 'nothing', 'x'")).toEqual([15_225]);
  });

  test("list constraints and describe tables", async () => {
    const constraints = (await rows("EXEC sp_helpconstraint 'Parts'"))?.map((row) => [
      row["constraint_name"],
      row["constraint_keys"],
    ]);
    expect(constraints).toEqual([
      ["fk_item", "Item"],
      ["parts_pkey", "Id"],
    ]);
    const add =
      "EXEC sp_addextendedproperty 'MS_Description', N'it''s', 'SCHEMA', 'dbo', 'TABLE', 'Parts', 'COLUMN', 'Code'";
    expect(await errors(add)).toEqual([]);
    const read =
      "SELECT CAST(value AS nvarchar(100)) AS v, COL_NAME(major_id, minor_id) AS c FROM sys.extended_properties";
    expect(await rows(read)).toEqual([{ v: "it's", c: "Code" }]);
    expect(
      await errors(
        "EXEC sp_dropextendedproperty 'MS_Description', 'SCHEMA', 'dbo', 'TABLE', 'Parts', 'COLUMN', 'Code'",
      ),
    ).toEqual([]);
    expect(await rows(read)).toEqual([]);
  });

  test("columns of INFORMATION_SCHEMA have the names of SQL Server", async () => {
    const { columns } = await client.batch("SELECT * FROM INFORMATION_SCHEMA.TABLES");
    expect(columns.flat().map((each) => each.split(" ")[0])).toEqual([
      "TABLE_CATALOG",
      "TABLE_SCHEMA",
      "TABLE_NAME",
      "TABLE_TYPE",
    ]);
  });

  test("a column may be compared with an object's name that a statement computes", async () => {
    const sql = `SELECT COLUMNPROPERTY(OBJECT_ID('[' + c.TABLE_SCHEMA + '].[' + c.TABLE_NAME + ']'), c.COLUMN_NAME, 'IsIdentity') AS i
      FROM INFORMATION_SCHEMA.COLUMNS c JOIN sys.columns k ON k.object_id = OBJECT_ID(c.TABLE_SCHEMA + '.' + c.TABLE_NAME) AND k.name = c.COLUMN_NAME
      WHERE c.TABLE_NAME = 'Items' ORDER BY c.ORDINAL_POSITION`;
    expect(await rows(sql)).toEqual([{ i: 1 }, { i: 0 }, { i: 0 }]);
  });
});
