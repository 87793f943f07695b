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
  const sql =
    "CREATE TABLE Items (Id int PRIMARY KEY, Name nvarchar(20)); INSERT INTO Items VALUES (1, 'a'), (2, 'b'), (3, NULL)";
  expect(await errors(sql)).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});

describe("cursors", () => {
  test("loop over rows, whose values are converted to the variables' types", async () => {
    const sql = `
      DECLARE @id varchar(9), @name nvarchar(20), @all nvarchar(100) = '', @least int = 2;
      DECLARE items CURSOR LOCAL FAST_FORWARD FOR SELECT Id, Name FROM Items WHERE Id >= @least ORDER BY Id;
      OPEN items;
      FETCH NEXT FROM items INTO @id, @name;
      WHILE @@FETCH_STATUS = 0
      BEGIN
        SET @all += @id + ISNULL(@name, '-');
        FETCH NEXT FROM Items INTO @id, @name
      END
      CLOSE items; DEALLOCATE items;
      SELECT @all AS a, @@FETCH_STATUS AS s`;
    expect(await rows(sql)).toEqual([{ a: "2b3-", s: -1 }]);
  });

  test("scroll, stay open over batches and commits, and close at a rollback", async () => {
    await client.batch(
      "DECLARE c SCROLL CURSOR FOR SELECT Id FROM Items ORDER BY Id; BEGIN TRAN; OPEN c; FETCH c; COMMIT",
    );
    const move =
      "DECLARE @n int = -1; FETCH LAST FROM c; FETCH PRIOR FROM c; FETCH ABSOLUTE 1 FROM c; FETCH RELATIVE @n FROM c";
    const { sets } = await client.batch(move);
    expect(sets).toEqual([[{ Id: 3 }], [{ Id: 2 }], [{ Id: 1 }], []]);
    expect(await errors("CLOSE c; BEGIN TRAN; OPEN c; ROLLBACK; CLOSE c; OPEN c; DEALLOCATE c")).toEqual([]);
  });

  test("of a procedure end with it", async () => {
    await client.batch("CREATE PROCEDURE P AS DECLARE p CURSOR LOCAL FOR SELECT 1 AS a; OPEN p; FETCH p");
    expect(await rows("EXEC P; EXEC P")).toEqual([{ a: 1 }]);
  });

  // biome-ignore format: a table
  test.each([
    [16_916, "OPEN absent"],
    [16_917, "DECLARE c CURSOR LOCAL FOR SELECT 1; FETCH NEXT FROM c"],
    [16_915, "DECLARE c CURSOR LOCAL FOR SELECT 1; DECLARE c CURSOR LOCAL FOR SELECT 2"],
    [16_905, "DECLARE c CURSOR LOCAL FOR SELECT 1; OPEN c; OPEN c"],
    [16_924, "DECLARE @a int; DECLARE c CURSOR LOCAL FOR SELECT 1, 2; OPEN c; FETCH c INTO @a"],
    [208,    "DECLARE c CURSOR LOCAL FOR SELECT * FROM absent; OPEN c"],
    [40_517, "DECLARE @c CURSOR"],
    [40_517, "DECLARE c CURSOR FOR SELECT Id FROM Items FOR UPDATE"],
  ])("error %i: %s", async (number, sql) => {
    expect(await errors(sql)).toEqual([number]);
  });
});
