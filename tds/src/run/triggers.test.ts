import { silentLog } from "@holdfast/common/log.ts";
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
const create = async (...texts: string[]) => {
  for (const text of texts) {
    const { errors: numbers, messages } = await client.batch(text);
    expect(numbers, messages.join("\n")).toEqual([]);
  }
};

describe.each(["single-db", "multi-db"] as const)("the layout %s", (layoutMode) => {
  beforeAll(async () => {
    postgresql = await startTestPostgresql();
    tds = await startTestTds(postgresql.url, silentLog, layoutMode);
    client = await connectTds(tds);
    await create(
      `CREATE TABLE Items (Id int PRIMARY KEY, Name nvarchar(20), Stock int NOT NULL, Changes int NOT NULL DEFAULT 0);
     CREATE TABLE Audit (What varchar(10), Id int, Old int, New int)`,
      `CREATE TRIGGER dbo.Items_Audit ON dbo.Items AFTER INSERT, UPDATE, DELETE AS
     BEGIN
       SET NOCOUNT ON;
       IF @@ROWCOUNT = 0 RETURN;
       DECLARE @what varchar(10) = 'update';
       IF NOT EXISTS (SELECT * FROM deleted) SET @what = 'insert'
       ELSE IF NOT EXISTS (SELECT * FROM inserted) SET @what = 'delete';
       INSERT INTO Audit (What, Id, Old, New)
         SELECT @what, COALESCE(i.Id, d.Id), d.Stock, i.Stock FROM inserted i FULL JOIN deleted d ON d.Id = i.Id;
       IF UPDATE(Stock) AND @what = 'update'
         UPDATE t SET Changes = t.Changes + 1 FROM Items t JOIN inserted i ON i.Id = t.Id;
     END`,
      `CREATE TRIGGER Items_Check ON Items FOR UPDATE AS
     IF EXISTS (SELECT * FROM inserted WHERE Stock < 0)
     BEGIN
       RAISERROR('Item %d has too little: %s', 16, 1, 7, 'none');
       ROLLBACK TRANSACTION;
       RETURN
     END
     IF EXISTS (SELECT * FROM inserted WHERE Stock > 1000) THROW 50123, 'Too many.', 3;
     PRINT 'checked'`,
    );
  });
  afterAll(async () => {
    await client?.close();
    await tds?.stop();
    await postgresql?.stop();
  });

  describe("AFTER triggers", () => {
    test("run once for a statement with its rows, and their own changes do not fire them", async () => {
      await create(
        "INSERT INTO Items (Id, Name, Stock) VALUES (1, 'a', 5), (2, 'b', 6)",
        "UPDATE Items SET Stock += 1",
      );
      await create("UPDATE Items SET Name = 'c' WHERE Id = 2", "DELETE Items WHERE Id = 9");
      expect(await rows("SELECT * FROM Audit ORDER BY What, Id, New")).toEqual([
        { What: "insert", Id: 1, Old: null, New: 5 },
        { What: "insert", Id: 2, Old: null, New: 6 },
        { What: "update", Id: 1, Old: 5, New: 6 },
        { What: "update", Id: 2, Old: 6, New: 7 },
        { What: "update", Id: 2, Old: 7, New: 7 },
      ]);
      expect(await rows("SELECT Id, Changes FROM Items ORDER BY Id")).toEqual([
        { Id: 1, Changes: 1 },
        { Id: 2, Changes: 1 },
      ]);
    });

    test("also run for clients of port 5432", async () => {
      await tds.superuser.query(
        `DELETE FROM ${layoutMode === "multi-db" ? "defaultdb_dbo" : "dbo"}.items WHERE id = 2`,
      );
      expect(await rows("SELECT Id, Old, New FROM Audit WHERE What = 'delete'")).toEqual([
        { Id: 2, Old: 7, New: null },
      ]);
    });

    test("RAISERROR and ROLLBACK end the transaction and the batch", async () => {
      const sql =
        "BEGIN TRANSACTION; INSERT INTO Audit (What) VALUES ('gone'); UPDATE Items SET Stock = -1; SELECT 1 AS a";
      const result = await client.batch(sql);
      expect(result.errors).toEqual([50_000, 3609]);
      expect(result.sets).toEqual([]);
      expect(
        await rows(
          "SELECT @@TRANCOUNT AS t, (SELECT COUNT(*) FROM Audit WHERE What = 'gone') AS n, (SELECT Stock FROM Items) AS s",
        ),
      ).toEqual([{ t: 0, n: 0, s: 6 }]);
    });

    test("THROW is caught by TRY with its number; PRINT is a message", async () => {
      const sql =
        "BEGIN TRY UPDATE Items SET Stock = 2000 END TRY BEGIN CATCH SELECT ERROR_NUMBER() AS n, ERROR_STATE() AS s, ERROR_MESSAGE() AS m END CATCH";
      expect(await rows(sql)).toEqual([{ n: 50_123, s: 3, m: "Too many." }]);
      const result = await client.batch("UPDATE Items SET Name = 'n'");
      expect(result).toMatchObject({ errors: [], messages: ["checked"], rowCount: 1 });
    });
  });

  describe("INSTEAD OF triggers", () => {
    test("replace changes of a view and of a table", async () => {
      await create(
        "CREATE VIEW Names AS SELECT Id, Name FROM Items",
        `CREATE TRIGGER Names_Change ON Names INSTEAD OF INSERT, DELETE AS
       BEGIN
         INSERT INTO Items (Id, Name, Stock) SELECT Id, UPPER(Name), 0 FROM inserted;
         DELETE t FROM Items t JOIN deleted d ON d.Id = t.Id;
       END`,
        "INSERT INTO Names (Id, Name) VALUES (20, 'x'), (21, 'y')",
        "DELETE Names WHERE Id = 20",
        "CREATE TABLE Kept (Id int PRIMARY KEY, Removed bit NOT NULL DEFAULT 0)",
        "CREATE TRIGGER Kept_Delete ON Kept INSTEAD OF DELETE AS UPDATE k SET Removed = 1 FROM Kept k JOIN deleted d ON d.Id = k.Id",
        "INSERT INTO Kept (Id) VALUES (1), (2); DELETE Kept WHERE Id = 2",
      );
      expect(await rows("SELECT Id, Name, Stock FROM Items WHERE Id >= 20")).toEqual([{ Id: 21, Name: "Y", Stock: 0 }]);
      expect(await rows("SELECT Id, Removed FROM Kept ORDER BY Id")).toEqual([
        { Id: 1, Removed: false },
        { Id: 2, Removed: true },
      ]);
    });

    test("on a table may change the table itself", async () => {
      await create(
        "CREATE TABLE Upper (Id int, Name nvarchar(9))",
        "CREATE TRIGGER Upper_Insert ON Upper INSTEAD OF INSERT AS INSERT INTO Upper (Id, Name) SELECT Id, UPPER(Name) FROM inserted",
        "INSERT INTO Upper VALUES (1, 'a'), (2, 'b')",
      );
      expect(await rows("SELECT * FROM Upper ORDER BY Id")).toEqual([
        { Id: 1, Name: "A" },
        { Id: 2, Name: "B" },
      ]);
    });
  });

  describe("definitions of triggers", () => {
    test("are altered, described and dropped", async () => {
      await create("ALTER TRIGGER Items_Check ON Items AFTER UPDATE AS PRINT 'new'");
      expect((await client.batch("UPDATE Items SET Name = 'm'")).messages).toEqual(["new"]);
      expect(
        await rows(
          "SELECT name, OBJECT_NAME(parent_id) AS p, is_instead_of_trigger AS i FROM sys.triggers WHERE name LIKE '%items[_]%' ORDER BY 1",
        ),
      ).toEqual([
        { name: "Items_Audit", p: "Items", i: 0 },
        { name: "Items_Check", p: "Items", i: 0 },
      ]);
      await create("DROP TRIGGER Items_Check");
      expect((await client.batch("UPDATE Items SET Name = 'm'")).messages).toEqual([]);
    });

    test("are gone with their table", async () => {
      const trigger = "CREATE TRIGGER Brief_Insert ON Brief AFTER INSERT AS PRINT 'fired'";
      await create("CREATE TABLE Brief (a int)", trigger, "DROP TABLE Brief; CREATE TABLE Brief (a int)");
      expect(await rows("SELECT name FROM sys.triggers WHERE name = 'Brief_Insert'")).toEqual([]);
      await create(trigger);
      expect((await client.batch("INSERT INTO Brief VALUES (1)")).messages).toEqual(["fired"]);
    });

    // biome-ignore format: a table
    test.each([
    [3701,  "DROP TRIGGER Absent"],
    [2714,  "CREATE TRIGGER Items_Audit ON Items AFTER INSERT AS PRINT ''"],
    [208,   "CREATE TRIGGER t ON Absent AFTER INSERT AS PRINT ''"],
    [207,   "CREATE TRIGGER t ON Items AFTER UPDATE AS IF UPDATE(absent) PRINT ''"],
    [40517, "CREATE TRIGGER t ON Items AFTER INSERT AS SELECT * FROM inserted"],
    [40517, "CREATE TRIGGER t ON Items AFTER INSERT AS EXEC p"],
    [40510, "CREATE TRIGGER t ON DATABASE FOR CREATE_TABLE AS PRINT ''"],
    [3701,  "DROP FUNCTION Items_Audit"],
  ])("error %i: %s", async (number, sql) => {
    expect(await errors(sql)).toEqual([number]);
  });
  });
});
