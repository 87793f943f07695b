import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient, TYPES } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  await rows("CREATE TABLE Parents (Id int IDENTITY PRIMARY KEY, Name nvarchar(50) UNIQUE)");
  await rows(`CREATE TABLE Kids (A int, B varchar(10), ParentId int REFERENCES Parents (Id) ON DELETE CASCADE, At datetime2(3),
    Price decimal(10,2) DEFAULT 1.5, Note nvarchar(max), PRIMARY KEY (B, A))`);
  await rows("CREATE INDEX IX_Kids ON Kids (ParentId DESC)");
  await rows("CREATE PROCEDURE Twice @a int, @b nvarchar(20) OUTPUT AS SELECT @a");
  await rows("CREATE FUNCTION dbo.Half(@a decimal(9,3)) RETURNS int AS BEGIN RETURN @a / 2 END");
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

async function rows(sql: string): Promise<Record<string, unknown>[]> {
  const { errors, sets } = await client.batch(sql);
  expect(errors).toEqual([]);
  return sets.at(-1) ?? [];
}
const values = async (sql: string, ...names: string[]) =>
  (await rows(sql)).map((row) => names.map((name) => row[name] ?? null));

describe("procedures of drivers", () => {
  test("sp_columns_100 has the types of columns by the codes of ODBC, and 29 columns", async () => {
    const call = "EXEC sp_columns_100 'Kids', 'dbo', NULL, NULL, 2, 3";
    expect(await values(call, "COLUMN_NAME", "DATA_TYPE", "TYPE_NAME", "PRECISION", "LENGTH", "SCALE")).toEqual([
      ["A", 4, "int", 10, 4, 0],
      ["B", 12, "varchar", 10, 10, null],
      ["ParentId", 4, "int", 10, 4, 0],
      ["At", 93, "datetime2", 23, 16, 3],
      ["Price", 3, "decimal", 10, 12, 2],
      ["Note", -9, "nvarchar", 0, 0, null],
    ]);
    expect(Object.keys((await rows(call))[0] ?? {})).toHaveLength(29);
    expect(await values("EXEC sp_columns 'Kids', @column_name = 'At'", "DATA_TYPE")).toEqual([[-9]]);
    expect(await values("EXEC sp_columns 'Par%', @column_name = 'I_'", "TYPE_NAME")).toEqual([["int identity"]]);
  });

  test("keys, indexes and special columns are in their order", async () => {
    const foreign = ["PKTABLE_NAME", "FKCOLUMN_NAME", "DELETE_RULE", "UPDATE_RULE", "KEY_SEQ"];
    expect(await values("EXEC sp_fkeys @fktable_name = 'Kids'", ...foreign)).toEqual([
      ["Parents", "ParentId", 0, 1, 1],
    ]);
    const index = ["INDEX_NAME", "NON_UNIQUE", "SEQ_IN_INDEX", "COLUMN_NAME", "COLLATION"];
    expect(await values("EXEC sp_statistics 'Kids'", ...index)).toEqual([
      ["kids_pkey", 0, 1, "B", "A"],
      ["kids_pkey", 0, 2, "A", "A"],
      ["ix_kids", 1, 1, "ParentId", "D"],
    ]);
    expect(await values("EXEC sp_statistics 'Kids', @is_unique = 'Y'", "INDEX_NAME")).toHaveLength(2);
    expect(await values("EXEC sp_special_columns 'Kids'", "COLUMN_NAME")).toEqual([["B"], ["A"]]);
    expect(await values("EXEC sp_special_columns 'Kids', @col_type = 'V'", "COLUMN_NAME")).toEqual([]);
  });

  test("procedures and functions have their parameters", async () => {
    const names = ["PROCEDURE_NAME", "COLUMN_NAME", "COLUMN_TYPE", "TYPE_NAME", "PRECISION", "ORDINAL_POSITION"];
    expect(await values("EXEC sp_sproc_columns '%'", ...names)).toEqual([
      ["Half;0", "@a", 1, "decimal", 9, 1],
      ["Twice;1", "@RETURN_VALUE", 5, "int", 10, 0],
      ["Twice;1", "@a", 1, "int", 10, 1],
      ["Twice;1", "@b", 2, "nvarchar", 20, 2],
    ]);
    const { sets } = await client.call("sp_sproc_columns_100", [["procedure_name", TYPES.NVarChar, "nothing"]]);
    expect(sets[0]).toEqual([]);
    expect(await values("EXEC sp_stored_procedures 'twi%'", "PROCEDURE_NAME")).toEqual([["Twice;1"]]);
  });

  test("types and databases are listed", async () => {
    expect(await values("EXEC sp_datatype_info 93, 3", "TYPE_NAME")).toEqual([
      ["datetime"],
      ["datetime2"],
      ["smalldatetime"],
    ]);
    expect((await rows("EXEC sp_datatype_info_100")).length).toBeGreaterThan(25);
    expect(await values("EXEC sp_tables '', '', '%'", "TABLE_QUALIFIER")).toContainEqual(["defaultdb"]);
    expect(await values("EXEC sp_tables '%', 'dbo', NULL, '''VIEW'''", "TABLE_NAME")).toEqual([]);
  });
});

test("SET options of a dynamic text end with it", async () => {
  await rows("EXEC ('SET FMTONLY ON SELECT 1 AS a')");
  await client.execute("SET NOCOUNT ON; SET FMTONLY ON", []);
  expect(await rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  expect((await client.batch("INSERT Parents (Name) VALUES (N'x')")).rowCount).toBe(1);
});
