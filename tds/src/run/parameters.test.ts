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
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

const day = new Date("2026-11-28T00:00:00.000Z");
const moment = new Date("2026-11-28T13:14:15.160Z");
const bytes = Buffer.from([0, 1, 0xfe, 0xff]);
const guid = "28E7A7BB-836A-4FBB-9C7F-7DCA0174E45A";
const long = "x".repeat(1_000_000);

// biome-ignore format: a table
const values: readonly [declared: string, type: (typeof TYPES)[keyof typeof TYPES], value: unknown, options?: object][] = [
  ["bit",              TYPES.Bit,              true],
  ["tinyint",          TYPES.TinyInt,          255],
  ["smallint",         TYPES.SmallInt,         -32_768],
  ["int",              TYPES.Int,              -2_147_483_648],
  ["bigint",           TYPES.BigInt,           "9223372036854775807"],
  ["decimal(18,4)",    TYPES.Decimal,          -1234.5678, { precision: 18, scale: 4 }],
  ["numeric(38,0)",    TYPES.Numeric,          12345678901234, { precision: 38, scale: 0 }],
  ["money",            TYPES.Money,            -922.5],
  ["smallmoney",       TYPES.SmallMoney,       214.1234],
  ["real",             TYPES.Real,             0.5],
  ["float",            TYPES.Float,            -1.5e300],
  ["date",             TYPES.Date,             day],
  ["datetime2(3)",     TYPES.DateTime2,        moment, { scale: 3 }],
  ["datetime",         TYPES.DateTime,         moment],
  ["smalldatetime",    TYPES.SmallDateTime,    new Date("2026-11-28T13:14:00.000Z")],
  ["char(5)",          TYPES.Char,             "abcde", { length: 5 }],
  ["varchar(20)",      TYPES.VarChar,          "caf\u00e9 \u20ac"],
  ["varchar(max)",     TYPES.VarChar,          long],
  ["nchar(4)",         TYPES.NChar,            "\u00fc\u00f1 x", { length: 4 }],
  ["nvarchar(40)",     TYPES.NVarChar,         "\u65e5\u672c \u{1f600}"],
  ["nvarchar(max)",    TYPES.NVarChar,         `${long}\u65e5`],
  ["binary(4)",        TYPES.Binary,           bytes, { length: 4 }],
  ["varbinary(10)",    TYPES.VarBinary,        bytes],
  ["varbinary(max)",   TYPES.VarBinary,        Buffer.alloc(300_000, 7)],
  ["uniqueidentifier", TYPES.UniqueIdentifier, guid],
];

describe("parameters", () => {
  test.each(values)(
    "%s makes the round trip in a column, as NULL and as OUTPUT",
    async (declared, type, value, options = {}) => {
      const table = `#p${declared.replaceAll(/\W/g, "_")}`;
      await client.batch(`CREATE TABLE ${table} (id int, value ${declared} NULL)`);
      const insert = `INSERT INTO ${table} VALUES (@id, @value)`;
      for (const [id, given] of [value, null].entries()) {
        const { errors } = await client.execute(insert, [
          ["id", TYPES.Int, id],
          ["value", type, given, options],
        ]);
        expect(errors).toEqual([]);
      }
      const { sets } = await client.batch(`SELECT value FROM ${table} ORDER BY id`);
      expect(sets).toEqual([[{ value }, { value: null }]]);
      const given = await client.execute("SELECT @value AS value", [["value", type, value, options]]);
      expect(given.sets).toEqual([[{ value }]]);
      const output = [["out", type, null, options]] as const;
      const { output: returned } = await client.execute("SET @out = @value", [["value", type, value, options]], output);
      if (!declared.includes("max")) expect(returned).toEqual({ out: value });
    },
  );

  test("a time keeps its digits", async () => {
    const { sets } = await client.batch("SELECT CONVERT(varchar(20), CAST('13:14:15.123' AS time(3)), 108) AS t");
    expect(sets).toEqual([[{ t: "13:14:15" }]]);
  });

  test("values convert to the declared types of their parameters", async () => {
    const sql = "EXEC sp_executesql N'SELECT @a + 1 AS a, @b AS b', N'@a int, @b varchar(2)', @a = '41', @b = 'long'";
    expect((await client.batch(sql)).sets).toEqual([[{ a: 42, b: "lo" }]]);
  });

  test("a missing parameter is error 8178, a wrong one 245", async () => {
    expect((await client.batch("EXEC sp_executesql N'SELECT @a', N'@a int'")).errors).toEqual([8178]);
    expect((await client.batch("EXEC sp_executesql N'SELECT @a', N'@a int', @a = 'x'")).errors).toEqual([245]);
  });

  test("a prepared statement runs with each of its values", async () => {
    const results = await client.prepared(
      "SELECT @a * 2 AS twice, @b AS text",
      [
        ["a", TYPES.Int, undefined],
        ["b", TYPES.NVarChar, undefined, { length: 20 }],
      ],
      [
        { a: 1, b: "one" },
        { a: null, b: null },
        { a: 21, b: "x" },
      ],
    );
    expect(results.map(({ sets }) => sets[0])).toEqual([
      [{ twice: 2, text: "one" }],
      [{ twice: null, text: null }],
      [{ twice: 42, text: "x" }],
    ]);
    expect((await client.batch("EXEC sp_execute 4711")).errors).toEqual([8179]);
  });

  test("text of a parameter is never text of a statement", async () => {
    const hostile = "'; DROP TABLE x; -- \\' $1 \u0000 \" ]";
    const { errors } = await client.execute("SELECT @a AS a", [["a", TYPES.NVarChar, hostile]]);
    // A NUL has no text of PostgreSQL.
    expect(errors).toEqual([50_000]);
    const without = hostile.replace("\u0000", "");
    const { sets } = await client.execute('SELECT @a AS [a"]', [["a", TYPES.NVarChar, without]]);
    expect(sets).toEqual([[{ 'a"': without }]]);
    expect((await client.batch(`SELECT N'${without.replaceAll("'", "''")}' AS a`)).sets).toEqual([[{ a: without }]]);
  });

  test("an unknown procedure is error 2812", async () => {
    expect((await client.batch("EXEC dbo.nothing 1, 'a'")).errors).toEqual([2812]);
  });
});
