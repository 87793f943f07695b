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
  const create = `
    CREATE TABLE Loaded (Id int NOT NULL PRIMARY KEY, Name nvarchar(50) NULL DEFAULT 'none', Price decimal(10,2) NULL,
      At datetime2(3) NULL, Data varbinary(max) NULL, Note ntext NULL, Flag bit NULL);
    CREATE TABLE Numbered (Id int IDENTITY PRIMARY KEY, Name varchar(20) CHECK (Name <> 'bad'))`;
  expect(await errors(create)).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

type Column = readonly [name: string, type: (typeof TYPES)[keyof typeof TYPES], options?: object];

/** Sends rows by tedious's bulk load; resolves to the number of rows or the number of the error. */
function load(
  table: string,
  columns: readonly Column[],
  list: readonly unknown[][] | AsyncIterable<unknown[]>,
  options: object = {},
): Promise<{ rowCount?: number | undefined; error?: number }> {
  return new Promise((resolve) => {
    const bulk = client.connection.newBulkLoad(table, options, (error, rowCount) => {
      const number = error != null && "number" in error ? Number(error.number) : 0;
      resolve(error == null ? { rowCount } : { error: number });
    });
    // As long as the test of 70 MB may take; the client's default of 15 s is too short on a busy machine.
    bulk.setTimeout(60_000);
    for (const [name, type, more] of columns) bulk.addColumn(name, type, { nullable: true, ...more });
    client.connection.execBulkLoad(bulk, list as never);
  });
}

const columns: Column[] = [
  ["Id", TYPES.Int, { nullable: false }],
  ["Name", TYPES.NVarChar, { length: 50 }],
  ["Price", TYPES.Decimal, { precision: 10, scale: 2 }],
  ["At", TYPES.DateTime2, { scale: 3 }],
  ["Data", TYPES.VarBinary, { length: Number.POSITIVE_INFINITY }],
  ["Note", TYPES.NText],
  ["Flag", TYPES.Bit],
];

describe("bulk load", () => {
  test("inserts values of each kind, NULLs and quotes", async () => {
    const at = new Date("2026-01-31T12:00:00.123Z");
    const text = `a"b\\c', {x}`;
    const sent = [
      [1, text, 1.5, at, Buffer.from([0, 255, 10]), "long".repeat(3_000), true],
      [2, "", null, null, null, null, null],
    ];
    expect(await load("Loaded", columns, sent, { keepNulls: true })).toEqual({ rowCount: 2 });
    expect(await rows("SELECT * FROM Loaded ORDER BY Id")).toEqual([
      {
        Id: 1,
        Name: text,
        Price: 1.5,
        At: at,
        Data: Buffer.from([0, 255, 10]),
        Note: "long".repeat(3_000),
        Flag: true,
      },
      { Id: 2, Name: "", Price: null, At: null, Data: null, Note: null, Flag: null },
    ]);
    expect(await rows("SELECT @@ROWCOUNT AS n")).toEqual([{ n: 2 }]);
  });

  test("replaces NULLs by defaults, unless KEEP_NULLS is set", async () => {
    const some = columns.slice(0, 2);
    expect(await load("Loaded", some, [[10, null]])).toEqual({ rowCount: 1 });
    expect(await load("Loaded", some, [[11, null]], { keepNulls: true })).toEqual({ rowCount: 1 });
    expect(await rows("SELECT Name FROM Loaded WHERE Id IN (10, 11) ORDER BY Id")).toEqual([
      { Name: "none" },
      { Name: null },
    ]);
  });

  test("keeps the values of an IDENTITY column, after which it continues", async () => {
    const identity: Column[] = [
      ["Id", TYPES.Int, { nullable: false }],
      ["Name", TYPES.VarChar, { length: 20 }],
    ];
    expect(await load("Numbered", identity, [[41, "a"]])).toEqual({ rowCount: 1 });
    expect(await load("Numbered", [["Name", TYPES.VarChar, { length: 20 }]], [["b"]])).toEqual({ rowCount: 1 });
    expect(await rows("SELECT Id FROM Numbered ORDER BY Id")).toEqual([{ Id: 41 }, { Id: 42 }]);
  });

  test("is complete or has no effect: a duplicate key in the last row", async () => {
    const many = Array.from({ length: 2_500 }, (_, index) => [1_000 + index, "x"]);
    expect(await load("Loaded", columns.slice(0, 2), [...many, [1_000, "again"]])).toEqual({ error: 2_627 });
    expect(await rows("SELECT COUNT(*) AS n FROM Loaded WHERE Id >= 1000")).toEqual([{ n: 0 }]);
    expect(await load("Numbered", [["Name", TYPES.VarChar, { length: 20 }]], [["bad"]])).toEqual({ error: 547 });
  });

  test("of 70 MB arrives in pieces, and ends with its transaction", async () => {
    await client.batch("BEGIN TRANSACTION");
    const text = "y".repeat(35_000);
    const generate = async function* () {
      for (let id = 0; id < 1_000; id += 1) yield [10_000 + id, text];
    };
    const big: Column[] = [
      ["Id", TYPES.Int, { nullable: false }],
      ["Note", TYPES.NText],
    ];
    expect(await load("Loaded", big, generate())).toEqual({ rowCount: 1_000 });
    expect(
      await rows("SELECT COUNT(*) AS n, MIN(LEN(CAST(Note AS nvarchar(max)))) AS l FROM Loaded WHERE Id >= 10000"),
    ).toEqual([{ n: 1_000, l: 35_000 }]);
    await client.batch("ROLLBACK");
    expect(await rows("SELECT COUNT(*) AS n FROM Loaded WHERE Id >= 10000")).toEqual([{ n: 0 }]);
  }, 60_000);

  test("a cancel while it is sent rolls it back, and the session continues", async () => {
    const ended = Promise.withResolvers<unknown>();
    const bulk = client.connection.newBulkLoad("Loaded", {}, (error) => ended.resolve(error));
    bulk.addColumn("Id", TYPES.Int, { nullable: false });
    const generate = async function* () {
      for (let id = 20_000; ; id += 1) {
        if (id === 25_000) client.connection.cancel();
        yield [id];
      }
    };
    client.connection.execBulkLoad(bulk, generate() as never);
    expect(await ended.promise).toMatchObject({ code: "ECANCEL" });
    expect(await rows("SELECT COUNT(*) AS n FROM Loaded WHERE Id >= 20000")).toEqual([{ n: 0 }]);
  });

  test("of an unknown table or column is refused before its rows", async () => {
    expect(await load("Missing", columns.slice(0, 1), [[1]])).toEqual({ error: 208 });
    expect(await load("Loaded", [["Nope", TYPES.Int]], [[1]])).toEqual({ error: 207 });
    expect(await rows("SET FMTONLY ON SELECT * FROM Numbered SET FMTONLY OFF")).toEqual([]);
  });
});

describe("INSERT ... EXEC", () => {
  test("inserts the rows of all result sets of a procedure or a text", async () => {
    await client.batch(
      "CREATE PROCEDURE TwoSets @n int AS SELECT @n AS a, 'x' AS b; PRINT 'between'; SELECT @n + 1, 'y'",
    );
    const result = await client.batch(
      "CREATE TABLE #t (a bigint, b nvarchar(9)); INSERT INTO #t (a, b) EXEC TwoSets @n = 4; INSERT #t EXEC ('SELECT 9, NULL'); SELECT a, b FROM #t ORDER BY a",
    );
    expect(result.errors).toEqual([]);
    expect(result.messages).toEqual(["between"]);
    expect(result.sets).toEqual([
      [
        { a: "4", b: "x" },
        { a: "5", b: "y" },
        { a: "9", b: null },
      ],
    ]);
  });

  test("errors: another number of columns, a nested one, OUTPUT", async () => {
    await client.batch(
      "CREATE PROCEDURE Nested AS CREATE TABLE #u (a int); INSERT #u EXEC ('SELECT 1'); SELECT a FROM #u",
    );
    const into = "DECLARE @t TABLE (a int); INSERT @t ";
    expect(await errors(`${into} EXEC ('SELECT 1, 2')`)).toEqual([213]);
    expect(await errors(`${into} EXEC Nested`)).toEqual([8164]);
    expect(await errors("CREATE TABLE #v (a int); INSERT #v OUTPUT inserted.a EXEC ('SELECT 1')")).toEqual([40517]);
  });
});
