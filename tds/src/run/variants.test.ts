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

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  expect(await errors("CREATE TABLE Settings (Id int IDENTITY PRIMARY KEY, Value sql_variant NULL)")).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

const guid = "6F9619FF-8B86-D011-B42D-00C04FC964FF";

describe("sql_variant", () => {
  // biome-ignore format: a table
  test.each([
    ["bit",              "CAST(1 AS bit)",                                    true,                                  1,   0],
    ["tinyint",          "CAST(255 AS tinyint)",                              255,                                   3,   0],
    ["int",              "42",                                                42,                                    10,  0],
    ["bigint",           "CAST(9007199254740993 AS bigint)",                  "9007199254740993",                    19,  0],
    ["decimal",          "CAST(1.50 AS decimal(9,2))",                        1.5,                                   9,   2],
    ["money",            "CAST(-2.5 AS money)",                               -2.5,                                  19,  4],
    ["real",             "CAST(0.5 AS real)",                                 0.5,                                   24,  0],
    ["float",            "1.5e0",                                             1.5,                                   53,  0],
    ["date",             "CAST('2026-01-31' AS date)",                        new Date("2026-01-31T00:00:00.000Z"),  10,  0],
    ["datetime",         "CAST('2026-01-31 12:00:00.123' AS datetime)",       new Date("2026-01-31T12:00:00.123Z"),  23,  3],
    ["datetime2",        "CAST('2026-01-31 12:00:00.123' AS datetime2(3))",   new Date("2026-01-31T12:00:00.123Z"),  27,  3],
    ["varchar",          "'a:b'",                                             "a:b",                                 0,   0],
    ["nvarchar",         "N'日本'",                                           "日本",                                0,   0],
    ["varbinary",        "0x0aff",                                            Buffer.from([10, 255]),                0,   0],
    ["uniqueidentifier", `CAST('${guid}' AS uniqueidentifier)`,               guid,                                  0,   0],
  ])("keeps the base type %s in a column, a variable and on the wire", async (base, sql, value, precision, scale) => {
    const read = `DECLARE @v sql_variant = ${sql}; DELETE Settings; INSERT INTO Settings (Value) VALUES (@v), (${sql}), (NULL);
      SELECT Value, SQL_VARIANT_PROPERTY(Value, 'BaseType') AS b, SQL_VARIANT_PROPERTY(Value, 'Precision') AS p,
        SQL_VARIANT_PROPERTY(Value, 'scale') AS s FROM Settings ORDER BY Id`;
    const row = { Value: value, b: base, p: precision, s: scale };
    const none = { Value: null, b: null, p: null, s: null };
    expect(await rows(read)).toEqual([row, row, none]);
    const again = `SELECT COUNT(*) AS n FROM Settings WHERE Value = ${sql} AND CAST(Value AS nvarchar(100)) IS NOT NULL`;
    expect(await rows(again)).toEqual([{ n: 2 }]);
  });

  test("converts to other types by its base type", async () => {
    const converted = `DECLARE @n sql_variant = 12.5, @t sql_variant = 'x', @d sql_variant = CAST('2026-01-31 12:00' AS datetime);
      SELECT CAST(@n AS int) AS i, CAST(@n AS float) AS f, CONVERT(varchar(30), @d) AS d, CONVERT(varchar(10), @d, 120) AS s,
        CAST(@t AS nvarchar(5)) + 'y' AS t, CAST(CAST(5 AS sql_variant) AS varbinary(8)) AS b, CAST(@d AS date) AS e`;
    expect(await rows(converted)).toEqual([
      {
        i: 12,
        f: 12.5,
        d: "Jan 31 2026 12:00PM",
        s: "2026-01-31",
        t: "xy",
        b: Buffer.from([0, 0, 0, 5]),
        e: new Date("2026-01-31T00:00:00.000Z"),
      },
    ]);
    expect(await errors("DECLARE @v sql_variant = 1; SELECT @v + 1")).toEqual([402]);
    expect(await errors("DECLARE @v sql_variant = 1, @i int; SET @i = 1; SELECT @i = 5 WHERE @v LIKE '1'")).toEqual([
      8116,
    ]);
    expect(await errors("DECLARE @v sql_variant = 1; CREATE TABLE #t (a int); INSERT #t VALUES (@v)")).toEqual([257]);
  });

  test("compares by families, then by values", async () => {
    const list = `SELECT CAST(v AS varchar(20)) AS v FROM (SELECT CAST(2 AS sql_variant) AS v UNION ALL SELECT CAST('z' AS sql_variant)
      UNION ALL SELECT CAST(1.5 AS sql_variant) UNION ALL SELECT CAST('B' AS sql_variant) UNION ALL SELECT CAST(1e0 AS sql_variant)
      UNION ALL SELECT CAST('a' AS sql_variant)) AS t ORDER BY t.v`;
    expect((await rows(list))?.map(({ v }) => v)).toEqual(["a", "B", "z", "1.5", "2", "1"]);
    const equal =
      "DECLARE @v sql_variant = 'Ab '; SELECT 1 AS a WHERE @v = 'aB' AND CAST(1 AS sql_variant) = CAST(1.0 AS sql_variant)";
    expect(await rows(equal)).toEqual([{ a: 1 }]);
    expect(await rows("SELECT CASE WHEN CAST(9 AS sql_variant) > 'a' THEN 1 ELSE 0 END AS a")).toEqual([{ a: 1 }]);
  });

  test("is a parameter, in JSON and XML, and a text for clients of PostgreSQL", async () => {
    expect(
      await errors(
        "CREATE PROCEDURE dbo.Put @v sql_variant AS DELETE Settings; INSERT INTO Settings (Value) VALUES (@v)",
      ),
    ).toEqual([]);
    expect((await client.call("dbo.Put", [["v", TYPES.Int, 7]])).errors).toEqual([]);
    expect((await tds.superuser.query("SELECT value FROM dbo.settings")).rows).toEqual([{ value: "int:7" }]);
    await tds.superuser.query("UPDATE dbo.settings SET value = 'plain'");
    const plain = "SELECT Value, SQL_VARIANT_PROPERTY(Value, 'BaseType') AS b FROM Settings";
    expect(await rows(plain)).toEqual([{ Value: "plain", b: "nvarchar" }]);
    expect((await client.call("dbo.Put", [["v", TYPES.NVarChar, "<x>"]])).errors).toEqual([]);
    expect(Object.values((await rows("SELECT Value AS v FROM Settings FOR JSON PATH"))?.[0] ?? {})).toEqual([
      '[{"v":"<x>"}]',
    ]);
    expect(Object.values((await rows("SELECT Value AS v FROM Settings FOR XML RAW"))?.[0] ?? {})).toEqual([
      '<row v="&lt;x&gt;"/>',
    ]);
    expect(
      await rows(
        "SELECT SQL_VARIANT_PROPERTY(Value, 'MaxLength') AS m, SQL_VARIANT_PROPERTY(Value, 'nothing') AS n FROM Settings",
      ),
    ).toEqual([{ m: 6, n: null }]);
  });
});
