import { startTestPostgresql, type TestPostgresql } from "@holdfast/testing/engines/postgresql.ts";
import { connectTds, type TdsClient } from "@holdfast/testing/servers/tds-client.ts";
import { startTestTds, type TestTds } from "@holdfast/testing/servers/tds-front-end.ts";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

let postgresql: TestPostgresql;
let tds: TestTds;
let client: TdsClient;
const rows = async (sql: string) => {
  const { sets, errors } = await client.batch(sql);
  expect(errors).toEqual([]);
  return sets.at(-1);
};
const errors = async (sql: string) => (await client.batch(sql)).errors;
const all = "SELECT id, n FROM t ORDER BY id";

beforeAll(async () => {
  postgresql = await startTestPostgresql();
  tds = await startTestTds(postgresql.url);
  client = await connectTds(tds);
  const { errors: failures } = await client.batch(`
    CREATE TABLE t (id int PRIMARY KEY, n int, s varchar(20)); CREATE TABLE u (id int, k int);
    CREATE TABLE heap (id int, n int); INSERT u VALUES (1, 10), (2, 20);`);
  expect(failures).toEqual([]);
});
afterAll(async () => {
  await client?.close();
  await tds?.stop();
  await postgresql?.stop();
});
beforeEach(async () => {
  const sql =
    "DELETE t; DELETE heap; INSERT t VALUES (1, 1, 'a'), (2, 2, 'b'), (3, 3, 'c'); INSERT heap SELECT id, n FROM t";
  expect(await errors(sql)).toEqual([]);
});

describe("UPDATE and DELETE with FROM", () => {
  // biome-ignore format: a table
  test.each([
    ["the table's name stands for its only alias", "DELETE t FROM t x JOIN u ON u.id = x.id WHERE u.k = 10",                      [[2, 2], [3, 3]]],
    ["a name with its schema does too",            "UPDATE dbo.t SET n = 0 FROM dbo.t AS x JOIN u ON u.id = x.id",                [[1, 0], [2, 0], [3, 3]]],
    ["a left join keeps rows without a partner",   "UPDATE x SET n = x.n + ISNULL(u.k, 100) FROM t x LEFT JOIN u ON u.id = x.id", [[1, 11], [2, 22], [3, 103]]],
    ["a condition finds rows without a partner",   "DELETE x FROM t x LEFT JOIN u ON u.id = x.id WHERE u.id IS NULL",             [[1, 1], [2, 2]]],
    ["a right join to the target keeps them",      "UPDATE t SET n = -1 FROM u RIGHT JOIN t ON u.id = t.id WHERE u.k IS NULL",    [[1, 1], [2, 2], [3, -1]]],
    ["a left join to the target is an inner join", "UPDATE t SET n = u.k FROM u LEFT JOIN t ON u.id = t.id",                      [[1, 10], [2, 20], [3, 3]]],
    ["a full join changes rows of the target",     "UPDATE t SET n = ISNULL(u.k, 0) FROM u FULL JOIN t ON u.id = t.id",           [[1, 10], [2, 20], [3, 0]]],
    ["OUTER APPLY reads the target",               "UPDATE t SET n = ISNULL(q.k, 7) FROM t OUTER APPLY (SELECT k FROM u WHERE u.id = t.id) q", [[1, 10], [2, 20], [3, 7]]],
  ])("%s", async (_, sql, expected) => {
    expect(await errors(sql)).toEqual([]);
    expect(await rows(all)).toEqual(expected.map(([id, n]) => ({ id, n })));
  });

  test("a table without a key has an outer join", async () => {
    expect(await errors("UPDATE h SET n = 0 FROM heap h LEFT JOIN u ON u.id = h.id WHERE u.id IS NULL")).toEqual([]);
    expect(await rows("SELECT id, n FROM heap ORDER BY id")).toEqual([
      { id: 1, n: 1 },
      { id: 2, n: 2 },
      { id: 3, n: 0 },
    ]);
  });

  test("error 8154: two sources are the table", async () => {
    expect(await errors("DELETE t FROM t a JOIN t b ON a.id = b.id + 1")).toEqual([8154]);
    expect(await rows("SELECT COUNT(*) AS c FROM t")).toEqual([{ c: 3 }]);
  });
});

describe("SET @variable in UPDATE", () => {
  test("a variable gets the new value of a column, or that of an expression", async () => {
    const sql =
      "DECLARE @n int, @s varchar(10); UPDATE t SET @n = n = n + 5, @s = s + '!' WHERE id = 3; SELECT @n AS n, @s AS s";
    expect(await rows(sql)).toEqual([{ n: 8, s: "c!" }]);
  });

  test("it is unchanged without rows, and OUTPUT returns rows beside it", async () => {
    const sql =
      "DECLARE @n int = 1; UPDATE t SET @n = n = 9 WHERE id = 7; SELECT @n AS n; UPDATE t SET @n = n = 4 OUTPUT inserted.id WHERE id = 2; SELECT @n AS n";
    const { sets, errors: failures } = await client.batch(sql);
    expect(failures).toEqual([]);
    expect(sets).toEqual([[{ n: 1 }], [{ id: 2 }], [{ n: 4 }]]);
  });

  test("values that depend on the order of the rows are refused", async () => {
    expect(await errors("DECLARE @n int = 0; UPDATE t SET @n = @n + n")).toEqual([40_517]);
    expect(await errors("DECLARE @n int = 0; UPDATE t SET @n += 1")).toEqual([40_517]);
    expect(await errors("DECLARE @n int = 0; UPDATE t SET n = 1, @n = n")).toEqual([40_517]);
    expect(await rows(all)).toEqual([1, 2, 3].map((id) => ({ id, n: id })));
  });
});

describe("values outside of their types", () => {
  test("end the result with an error, and the session remains", async () => {
    expect(await errors("SELECT id, CAST(id * 30000 AS smalldatetime) FROM t")).toEqual([8_115]);
    expect(await errors("SELECT CAST(1000 AS tinyint)")).toEqual([220]);
    expect(await errors("SELECT CAST(40000 AS smallint)")).toEqual([220]);
    expect(await errors("SELECT LOG(-1)")).toEqual([3_623]);
    expect(await errors("SELECT TOP (NULL) id FROM t")).toEqual([1_060]);
    expect(await rows("SELECT 1 AS a")).toEqual([{ a: 1 }]);
  });
});
