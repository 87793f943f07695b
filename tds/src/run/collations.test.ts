import { silentLog } from "@holdfast/common/log.ts";
import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient, TYPES } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { defaultCollation, findCollation } from "../types/collation.ts";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;

beforeAll(async () => {
  postgresql = await startTestPostgresql();
});
afterAll(async () => {
  await postgresql?.stop();
});

const rows = async (sql: string) => {
  const { errors, messages, sets } = await client.batch(sql);
  expect([errors, errors.length > 0 ? messages : []]).toEqual([[], []]);
  return sets.at(-1) ?? [];
};
/** Values of the first column. */
const list = async (sql: string) => (await rows(sql)).map((row) => Object.values(row)[0]);
const value = async (sql: string) => (await list(sql))[0];
const errors = async (sql: string) => (await client.batch(sql)).errors;

function ofService(name: string): void {
  beforeAll(async () => {
    tds = await startTestTds(postgresql.url, silentLog, "single-db", findCollation(name));
    client = await connectTds(tds);
    await client.batch(`CREATE TABLE words (id int IDENTITY, word nvarchar(20), code varchar(20))`);
    await client.batch(
      `INSERT words (word, code) VALUES (N'apple', 'a'), (N'Apple', 'A'), (N'äpple', 'b'), (N'Zoo', 'B')`,
    );
  });
  afterAll(async () => {
    await client?.close();
    await tds?.stop();
  });
}

describe("a service with the default collation", () => {
  ofService(defaultCollation.name);

  test("compares texts without their case, and with their accents", async () => {
    expect(await list("SELECT id FROM words WHERE word = 'APPLE' ORDER BY id")).toEqual([1, 2]);
    expect(await list("SELECT id FROM words WHERE word LIKE 'APP%' ORDER BY id")).toEqual([1, 2]);
    expect(await list("SELECT id FROM words WHERE word LIKE N'ÄPP%'")).toEqual([3]);
    expect(await value("SELECT CHARINDEX(N'Ä', N'xä')")).toBe(2);
    expect(await value("SELECT REPLACE(N'xÄx', N'ä', 'a')")).toBe("xax");
    expect(await list("SELECT DISTINCT code FROM words WHERE id < 3")).toHaveLength(1);
    expect(await value("SELECT CASE WHEN 'a' = 'A' THEN 1 ELSE 0 END AS a")).toBe(1);
  });

  test("compares in the collation of a COLLATE clause", async () => {
    const matches = async (collation: string, condition: string) =>
      list(`SELECT id FROM words WHERE word COLLATE ${collation} ${condition} ORDER BY id`);
    expect(await matches("Latin1_General_CS_AS", "= 'apple'")).toEqual([1]);
    expect(await matches("Latin1_General_CI_AI", "= 'APPLE'")).toEqual([1, 2, 3]);
    expect(await matches("Latin1_General_CS_AI", "= 'apple'")).toEqual([1, 3]);
    expect(await matches("latin1_general_bin2", "= 'Apple'")).toEqual([2]);
    expect(await matches("Latin1_General_CS_AS", "LIKE 'a%'")).toEqual([1]);
    expect(await matches("Latin1_General_CI_AI", "LIKE 'A[o-q]%'")).toEqual([1, 2, 3]);
    expect(await matches("DATABASE_DEFAULT", "IN ('APPLE')")).toEqual([1, 2]);
    expect(await value("SELECT CHARINDEX('B' COLLATE Latin1_General_BIN2, 'abB')")).toBe(3);
    expect(await value("SELECT PATINDEX('%B%', 'abB' COLLATE Latin1_General_CS_AS)")).toBe(3);
    expect(await value("SELECT REPLACE(N'xÄäx' COLLATE Latin1_General_CI_AI, 'a', '-')")).toBe("x--x");
    expect(await value("SELECT REPLACE('aAa' COLLATE Latin1_General_CS_AS, 'A', '-')")).toBe("a-a");
    expect(await value("SELECT CASE WHEN 'a' COLLATE Latin1_General_CS_AS = 'A' THEN 1 ELSE 0 END AS a")).toBe(0);
  });

  test("orders in the collation of a COLLATE clause", async () => {
    const ordered = async (collation: string) => list(`SELECT word FROM words ORDER BY word COLLATE ${collation}, id`);
    expect(await ordered("Latin1_General_CS_AS")).toEqual(["apple", "Apple", "äpple", "Zoo"]);
    expect(await ordered("Latin1_General_BIN2")).toEqual(["Apple", "Zoo", "apple", "äpple"]);
  });

  test("has columns of other collations, which cast, functions and variables keep", async () => {
    await client.batch("CREATE TABLE codes (k varchar(9) COLLATE Latin1_General_CS_AS PRIMARY KEY, d varchar(9))");
    expect(await errors("INSERT codes VALUES ('a', 'x'), ('A', 'X')")).toEqual([]);
    expect(await list("SELECT k FROM codes WHERE k = 'a'")).toEqual(["a"]);
    expect(await list("SELECT k FROM codes WHERE k LIKE 'A%'")).toEqual(["A"]);
    expect(await list("SELECT k FROM codes WHERE CAST(k AS varchar(5)) = 'a'")).toEqual(["a"]);
    expect(await list("SELECT k FROM codes WHERE REVERSE(k) = 'a'")).toEqual(["a"]);
    expect(await list("SELECT q.k FROM (SELECT LEFT(k, 1) AS k FROM codes) AS q WHERE q.k IN ('A')")).toEqual(["A"]);
    expect(await list("DECLARE @k varchar(9) = 'a'; SELECT k FROM codes WHERE k = @k")).toEqual(["a"]);
    const { sets } = await client.execute("SELECT k FROM codes WHERE k = @k", [["k", TYPES.VarChar, "A"]]);
    expect(sets[0]).toEqual([{ k: "A" }]);
    expect(await list("SELECT k FROM codes WHERE k = 'q' UNION SELECT 'a' UNION SELECT k FROM codes")).toHaveLength(2);
    expect(await list("SELECT k INTO #copy FROM codes; SELECT k FROM #copy WHERE k = 'a'")).toEqual(["a"]);
    await client.batch("ALTER TABLE codes ALTER COLUMN d varchar(9) COLLATE Latin1_General_BIN2");
    expect(await list("SELECT d FROM codes WHERE d = 'x'")).toEqual(["x"]);
  });

  test("compares literals of a derived table, of VALUES and of UNION like columns", async () => {
    expect(await list("SELECT a FROM (SELECT 'x' AS a) AS q WHERE a = 'X'")).toEqual(["x"]);
    expect(await list("SELECT a FROM (VALUES ('x'), ('y')) AS q (a) WHERE a = 'X'")).toEqual(["x"]);
    expect(await list("SELECT 'x' AS a UNION SELECT 'X'")).toHaveLength(1);
    expect(await list("WITH c AS (SELECT 'x' AS a UNION ALL SELECT 'y') SELECT a FROM c WHERE a IN ('X')")).toEqual([
      "x",
    ]);
    expect(await list("SELECT value FROM STRING_SPLIT('x,y', ',') WHERE value = 'X'")).toEqual(["x"]);
    expect(await list("SELECT 1 WHERE 'X' IN (SELECT 'x')")).toEqual([1]);
    expect(await list("SELECT MAX(a) FROM (SELECT 'x' AS a) AS q HAVING MAX('b') = 'B'")).toEqual(["x"]);
  });

  test("refuses texts of two collations, and collations that it does not have", async () => {
    await client.batch("CREATE TABLE other (k varchar(9) COLLATE Latin1_General_CI_AS)");
    const { errors: numbers, messages } = await client.batch(
      "SELECT * FROM other AS o JOIN words AS w ON o.k = w.code",
    );
    expect([numbers, messages]).toEqual([[468], []]);
    expect(await errors("SELECT * FROM other AS o JOIN words AS w ON o.k COLLATE DATABASE_DEFAULT = w.code")).toEqual(
      [],
    );
    expect(
      await errors("SELECT 1 FROM words WHERE word COLLATE Latin1_General_BIN = code COLLATE Latin1_General_BIN2"),
    ).toEqual([468]);
    expect(await errors("SELECT word COLLATE Klingon_CI_AS FROM words")).toEqual([448]);
    expect(await errors("CREATE TABLE t (a nvarchar(10) COLLATE Japanese_CI_AS)")).toEqual([448]);
    expect(await errors("SELECT id COLLATE Latin1_General_BIN FROM words")).toEqual([447]);
    expect(await errors("CREATE TABLE t (a int COLLATE Latin1_General_BIN)")).toEqual([447]);
  });

  test("reports collations in the catalog and in metadata", async () => {
    await client.batch("CREATE TABLE shown (a varchar(9), b nvarchar(9) COLLATE Latin1_General_BIN2, c int)");
    const columns =
      "SELECT name, collation_name FROM sys.columns WHERE object_id = OBJECT_ID('shown') ORDER BY column_id";
    expect(await rows(columns)).toEqual([
      { name: "a", collation_name: defaultCollation.name },
      { name: "b", collation_name: "Latin1_General_BIN2" },
      { name: "c", collation_name: null },
    ]);
    const listed =
      "SELECT name FROM fn_helpcollations() WHERE name LIKE 'sql%cs_as' AND description LIKE '%case-sensitive%'";
    expect(await list(listed)).toEqual(["SQL_Latin1_General_CP1_CS_AS"]);
    expect(await value("SELECT CAST(COLLATIONPROPERTY('Latin1_General_BIN2', 'CodePage') AS int)")).toBe(1_252);
    const { collations } = await client.batch("SELECT a, b, c FROM shown");
    const [us, codePoints] = [
      { lcid: 0x0409, sortId: 52 },
      { lcid: 0x0409, flags: 0x20, sortId: 0 },
    ];
    expect(collations).toMatchObject([[us, codePoints, undefined]]);
  });

  test("compiles functions and triggers with the collations of their columns", async () => {
    await client.batch(
      "CREATE FUNCTION dbo.same(@a varchar(9), @b varchar(9)) RETURNS int AS BEGIN IF @a = @b RETURN 1; RETURN 0 END",
    );
    await client.batch(
      "CREATE FUNCTION dbo.exact(@a varchar(9)) RETURNS TABLE AS RETURN SELECT @a COLLATE Latin1_General_CS_AS AS a",
    );
    expect(await value("SELECT dbo.same('a', 'A')")).toBe(1);
    expect(await list("SELECT a FROM dbo.exact('x') WHERE a = 'X'")).toEqual([]);
  });
});

describe("a case-sensitive service", () => {
  ofService("SQL_Latin1_General_CP1_CS_AS");

  test("compares columns, literals and variables with their case; names of objects have none", async () => {
    expect(await list("SELECT ID FROM WORDS WHERE word = 'Apple'")).toEqual([2]);
    expect(await list("SELECT id FROM words WHERE word LIKE 'A%'")).toEqual([2]);
    expect(await value("SELECT CASE WHEN 'a' = 'A' THEN 1 ELSE 0 END AS a")).toBe(0);
    expect(await value("DECLARE @a varchar(9) = 'a'; SELECT CASE WHEN @a = 'A' THEN 1 ELSE 0 END AS a")).toBe(0);
    expect(await list("SELECT DISTINCT code FROM words")).toHaveLength(4);
    expect(await list("SELECT word FROM words WHERE word COLLATE SQL_Latin1_General_CP1_CI_AS = 'APPLE'")).toHaveLength(
      2,
    );
    expect(await errors("CREATE TABLE keys (k varchar(9) PRIMARY KEY); INSERT keys VALUES ('a'), ('A')")).toEqual([]);
    expect(await value("SELECT OBJECT_ID('WORDS') - OBJECT_ID('words')")).toBe(0);
    expect(
      await list(
        "SELECT w.id FROM sys.tables AS t JOIN words AS w ON t.name <> w.word WHERE t.name = 'words' AND w.id = 1",
      ),
    ).toEqual([1]);
  });

  test("reports its collation", async () => {
    const name = "SQL_Latin1_General_CP1_CS_AS";
    expect(await value("SELECT SERVERPROPERTY('Collation')")).toBe(name);
    expect(await value("SELECT collation_name FROM sys.databases WHERE name = 'defaultdb'")).toBe(name);
    expect(await value("SELECT collation_name FROM sys.columns WHERE name = 'word'")).toBe(name);
    expect(await value("SELECT DATABASEPROPERTYEX('defaultdb', 'Collation')")).toBe(name);
    expect((await client.batch("SELECT word FROM words")).collations).toMatchObject([[{ sortId: 51 }]]);
    expect((await client.call("sp_columns", [["table_name", TYPES.NVarChar, "words"]])).sets[0]).toHaveLength(3);
  });
});

describe("a service of UTF-8", () => {
  ofService("Latin1_General_100_CI_AS_SC_UTF8");

  test("keeps characters outside of Windows-1252 in varchar, also in parameters", async () => {
    await client.batch("INSERT words (code) VALUES ('日本')");
    expect(await list("SELECT code FROM words WHERE code = '日本'")).toEqual(["日本"]);
    const { sets } = await client.execute("SELECT @p AS p", [["p", TYPES.VarChar, "日本"]]);
    expect(sets[0]).toEqual([{ p: "日本" }]);
    expect((await client.batch("SELECT code FROM words")).columns).toEqual([["code NVarChar"]]);
  });
});

describe("a service of code points", () => {
  ofService("Latin1_General_BIN2");

  test("orders and compares by code points", async () => {
    expect(await list("SELECT word FROM words ORDER BY word")).toEqual(["Apple", "Zoo", "apple", "äpple"]);
    expect(await list("SELECT word FROM words WHERE word LIKE 'a%'")).toEqual(["apple"]);
    expect(await list("SELECT a FROM (VALUES ('b'), ('B'), ('a')) AS q (a) ORDER BY a")).toEqual(["B", "a", "b"]);
  });
});
